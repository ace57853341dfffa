/** Removes one level of JSON and URL escapes from a text in one pass. */
import { ByteWriter, type DecodedLayer, isLineBreak, writeCodeUnitAsUtf8 } from "./layers.js";
import { HEX_DIGIT_VALUES } from "./numerals.js";
import { addSpan, type Spans, uniteSpans } from "./spans.js";
import { findEqualBytes, repeatByteInWord, viewAsInt32Words } from "./words.js";

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const LOWER_U = 0x75;
const LOWER_X = 0x78;
/** Over at most this distance, bytes are searched and copied one by one, because a library call would take as long. */
const BYTEWISE_DISTANCE = 64;
/** A decoded character may overwrite the high surrogate before it, which has three bytes in UTF-8. */
const REWRITTEN_BYTES_MAX = 3;
const DECODED_BYTES_MAX = 4;
const BEYOND_EVERY_TEXT = 2 ** 30;

/** Table by character code: the byte that a backslash followed by this character stands for; 0 if this is no escape. */
const ESCAPED_BYTES = new Uint8Array(256);
for (const [name, value] of Object.entries({ b: 8, t: 9, n: 10, f: 12, r: 13, '"': 34, "\\": 92, "/": 47 })) {
  ESCAPED_BYTES[name.charCodeAt(0)] = value;
}

function parseHexAt(bytes: Uint8Array, from: number, count: number): number {
  if (from + count > bytes.length) return -1;
  let value = 0;
  for (let index = from; index < from + count; index += 1) {
    const digit = HEX_DIGIT_VALUES[bytes[index]!]!;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

const LENGTH_SHIFT = 16;
const PERCENT_LENGTH = 3;

/** Returns the length of the escape, shifted by LENGTH_SHIFT, plus the byte or code unit that it stands for; 0 without an escape. */
function decodeEscapeAt(bytes: Uint8Array, index: number): number {
  const mark = bytes[index];
  if (mark === BACKSLASH && index + 1 < bytes.length) {
    const escapedByte = ESCAPED_BYTES[bytes[index + 1]!]!;
    return escapedByte === 0 ? decodeNumberAt(bytes, index) : (2 << LENGTH_SHIFT) | escapedByte;
  }
  if (mark !== PERCENT || index + 2 >= bytes.length) return 0;
  const value = (HEX_DIGIT_VALUES[bytes[index + 1]!]! << 4) | HEX_DIGIT_VALUES[bytes[index + 2]!]!;
  return value < 0 ? 0 : (PERCENT_LENGTH << LENGTH_SHIFT) | value;
}

/** Decodes like `decodeEscapeAt`, but only an escape that contains the number of a character, such as `\u0041` or `\x41`. */
function decodeNumberAt(bytes: Uint8Array, index: number): number {
  const letter = bytes[index + 1];
  const digits = letter === LOWER_U ? 4 : letter === LOWER_X ? 2 : 0;
  const value = digits === 0 ? -1 : parseHexAt(bytes, index + 2, digits);
  return value < 0 ? 0 : ((2 + digits) << LENGTH_SHIFT) | value;
}

const BACKSLASH_WORD = repeatByteInWord(BACKSLASH);
const PERCENT_WORD = repeatByteInWord(PERCENT);

const ESCAPE_MAX_BYTES = 6;

/** Characters that may follow the start of an escape, also of a nested escape with line breaks in it. */
const ESCAPE_CHARACTERS = new Set(Buffer.from("\\%uxnr\r\n0123456789abcdefABCDEF"));
const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800;

/**
 * Returns the index at which an incomplete escape (even a nested one) or half of a surrogate pair may begin before `end`. Returns `end` if
 * there is none.
 */
export function findIncompleteEscape(text: string, end: number): number {
  let first = end;
  for (let at = end - 1; at >= 0; at -= 1) {
    const unit = text.charCodeAt(at);
    if (unit === BACKSLASH || unit === PERCENT || isHighSurrogate(unit)) first = at;
    else if (!ESCAPE_CHARACTERS.has(unit)) break;
  }
  return first;
}

class EscapeFinder {
  private readonly words: Int32Array;
  /** Index in `spans` of the first span (range) that was not searched completely. */
  private spanIndex = 0;

  /** @param spans ranges of the text; only escapes with a byte in one of them are returned */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly spans: Spans,
  ) {
    this.words = viewAsInt32Words(bytes);
  }

  /** Returns the index of the first escape at or after `from`, or the length of the text. `from` must not decrease from call to call. */
  findNextEscape(from: number): number {
    const { bytes, spans } = this;
    for (; this.spanIndex < spans.length; this.spanIndex += 2) {
      const to = Math.min(bytes.length, spans[this.spanIndex + 1]!);
      const at = this.findEscapeWithin(Math.max(from, spans[this.spanIndex]! - ESCAPE_MAX_BYTES + 1), to);
      if (at < to) return at;
    }
    return bytes.length;
  }

  /**
   * Returns the next index at which an escape is possible. The caller has already found that there is none at `from`.
   */
  findNextPossibleEscape(from: number): number {
    const { bytes } = this;
    const near = Math.min(bytes.length, from + BYTEWISE_DISTANCE);
    let to = from + 1;
    while (to < near && bytes[to] !== BACKSLASH && bytes[to] !== PERCENT) to += 1;
    return to < near ? to : this.findNextEscape(to);
  }

  /**
   * Returns the index of the first escape from `from` up to, but not including, `to`; `to` or more if there is none.
   */
  private findEscapeWithin(from: number, to: number): number {
    const { bytes } = this;
    let at = from;
    while (at < to) {
      if ((bytes[at] === BACKSLASH || bytes[at] === PERCENT) && decodeEscapeAt(bytes, at) !== 0) return at;
      at += 1;
      if ((at & 3) === 0) at = this.findWordWithMark(at >> 2, to >> 2) << 2;
    }
    return at;
  }

  /** Returns the index of the first word before `to` that contains a backslash or percent sign; `to` if there is none. */
  private findWordWithMark(from: number, to: number): number {
    const { words } = this;
    let word = from;
    for (; word < to; word += 1) {
      if ((findEqualBytes(words[word]!, BACKSLASH_WORD) | findEqualBytes(words[word]!, PERCENT_WORD)) !== 0) break;
    }
    return word;
  }
}

/** Converts spans (ranges) of the input to the corresponding spans of the output, while escapes are removed. */
class SpanMapper {
  readonly spans: number[] = [];
  nextBoundary: number;
  constructor(private readonly inputSpans: Spans) {
    this.nextBoundary = inputSpans[0] ?? BEYOND_EVERY_TEXT;
  }

  /**
   * Converts the span boundaries up to `to`. Call it after the input from `from` to `to` was written, so that the output has `length`
   * bytes. `isSame` is false for an escape.
   */
  recordWritten(from: number, to: number, length: number, isSame: boolean): void {
    for (; this.nextBoundary <= to; this.nextBoundary = this.inputSpans[this.spans.length] ?? BEYOND_EVERY_TEXT) {
      this.spans.push(isSame ? length - (to - Math.max(from, this.nextBoundary)) : length);
    }
  }
}

/** Writes a code unit whose UTF-8 form has more than one byte. Returns the new length of the output. */
function writeCodeUnit(writer: ByteWriter, unit: number, from: number, length: number): number {
  writer.length = length;
  writeCodeUnitAsUtf8(writer, unit, from);
  return writer.length;
}

/** Copies the items from `from` up to, but not including, `to` to another array, or to an earlier index of the same array. */
function copyUnits<Units extends Uint8Array | Int32Array>(
  bytes: Units,
  from: number,
  to: number,
  target: Units,
  targetIndex: number,
): void {
  if (bytes === target && from === targetIndex) return;
  if (to - from > BYTEWISE_DISTANCE) target.set(bytes.subarray(from, to), targetIndex);
  else for (let index = from; index < to; index += 1) target[targetIndex + index - from] = bytes[index]!;
}

/**
 * Removes one level of escapes from a text; returns null if there are none.
 * @param mayOverwriteInput true to overwrite the input's memory, which is then invalid; the output is never longer than the input
 */
export function decodeEscapesOnce(layer: DecodedLayer, mayOverwriteInput = false): DecodedLayer | null {
  const { bytes, textIndexes: at } = layer;
  // Only `newSpans` is searched, because all other ranges were already searched in the previous layer (form of the text).
  const escapeFinder = new EscapeFinder(bytes, layer.newSpans);
  const first = escapeFinder.findNextEscape(0);
  if (first === bytes.length) return null;
  const writer = mayOverwriteInput ? new ByteWriter(bytes, at) : ByteWriter.createWithSize(bytes.length, at !== null);
  const { bytes: written, textIndexes: writtenIndexes } = writer;
  const rewrittenSpans: number[] = [];
  const spanMapper = new SpanMapper(layer.changedSpans);
  copyUnits(bytes, 0, first, written, 0);
  if (writtenIndexes !== null) copyUnits(at!, 0, first, writtenIndexes, 0);
  spanMapper.recordWritten(0, first, first, true);
  let length = first;
  /** Index in the output up to which `rewrittenSpans` contains all decoded escapes. */
  let rewrittenUntil = 0;
  for (let index = first; index < bytes.length; ) {
    const packedEscape = decodeEscapeAt(bytes, index);
    if (packedEscape === 0) {
      const to = escapeFinder.findNextPossibleEscape(index);
      copyUnits(bytes, index, to, written, length);
      if (writtenIndexes !== null) copyUnits(at!, index, to, writtenIndexes, length);
      length += to - index;
      if (spanMapper.nextBoundary <= to) spanMapper.recordWritten(index, to, length, true);
      index = to;
      continue;
    }
    if (length + DECODED_BYTES_MAX >= rewrittenUntil) {
      rewrittenUntil = length + BYTEWISE_DISTANCE;
      addSpan(rewrittenSpans, Math.max(0, length - REWRITTEN_BYTES_MAX), rewrittenUntil);
    }
    const value = packedEscape & 0xffff;
    const size = packedEscape >> LENGTH_SHIFT;
    if (value >= 0x80 && size !== PERCENT_LENGTH)
      length = writeCodeUnit(writer, value, at === null ? 0 : at[index]!, length);
    else {
      written[length] = value;
      if (writtenIndexes !== null) writtenIndexes[length] = at![index]!;
      if (!isLineBreak(value)) length += 1;
    }
    index += size;
    if (spanMapper.nextBoundary <= index) spanMapper.recordWritten(index, index, length, false);
  }
  rewrittenSpans[rewrittenSpans.length - 1] = Math.min(rewrittenSpans.at(-1)!, length);
  const textForm = { bytes: written.subarray(0, length), textIndexes: writtenIndexes?.subarray(0, length) ?? null };
  return {
    ...textForm,
    newSpans: rewrittenSpans,
    changedSpans: spanMapper.spans.length === 0 ? rewrittenSpans : uniteSpans(spanMapper.spans, rewrittenSpans),
  };
}
