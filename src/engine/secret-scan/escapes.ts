/** Removes one layer of JSON and URL escapes from a text in one pass. */
import { isLineBreak, type Layer, pushUnit, Writer } from "./layers.js";
import { HEX_VALUES } from "./numerals.js";
import { addSpan, type Spans, uniteSpans } from "./spans.js";
import { findEqualBytes, repeatInWord, viewAsWords } from "./words.js";

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const LOWER_U = 0x75;
const LOWER_X = 0x78;
/** Distance up to which bytes are searched and copied one by one. For such short distances, a library call would cost as much. */
const BYTEWISE_DISTANCE = 64;
/** Number of bytes before an escape that the decoded escape may overwrite (a high surrogate). */
const REWRITTEN_BYTES_MAX = 3;
const DECODED_BYTES_MAX = 4;
/** Index that is larger than the length of every text. */
const BEYOND_EVERY_TEXT = 2 ** 30;

/** Table by character: the byte that a backslash followed by this character stands for; 0 for none. */
const ESCAPED_BYTES = new Uint8Array(256);
for (const [name, value] of Object.entries({ b: 8, t: 9, n: 10, f: 12, r: 13, '"': 34, "\\": 92, "/": 47 })) {
  ESCAPED_BYTES[name.charCodeAt(0)] = value;
}

/** Returns the number in `count` hex digits from the index `from`; -1 if these characters are not hex digits. */
function parseHexAt(bytes: Uint8Array, from: number, count: number): number {
  if (from + count > bytes.length) return -1;
  let value = 0;
  for (let index = from; index < from + count; index += 1) {
    const digit = HEX_VALUES[bytes[index]!]!;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

const LENGTH_SHIFT = 16;
const PERCENT_LENGTH = 3;

/**
 * Returns the escape at an index as one number: the length of the escape, shifted left by LENGTH_SHIFT, plus the byte
 * or code unit that it stands for; 0 for none.
 */
function decodeEscapeAt(bytes: Uint8Array, index: number): number {
  const mark = bytes[index];
  if (mark === BACKSLASH && index + 1 < bytes.length) {
    const named = ESCAPED_BYTES[bytes[index + 1]!]!;
    return named === 0 ? decodeNumberAt(bytes, index) : (2 << LENGTH_SHIFT) | named;
  }
  if (mark !== PERCENT || index + 2 >= bytes.length) return 0;
  const value = (HEX_VALUES[bytes[index + 1]!]! << 4) | HEX_VALUES[bytes[index + 2]!]!;
  return value < 0 ? 0 : (PERCENT_LENGTH << LENGTH_SHIFT) | value;
}

/** Returns the escape at an index if it contains the number of a character, such as `\u0041` or `\x41`; 0 for none. */
function decodeNumberAt(bytes: Uint8Array, index: number): number {
  const letter = bytes[index + 1];
  const digits = letter === LOWER_U ? 4 : letter === LOWER_X ? 2 : 0;
  const value = digits === 0 ? -1 : parseHexAt(bytes, index + 2, digits);
  return value < 0 ? 0 : ((2 + digits) << LENGTH_SHIFT) | value;
}

const BACKSLASHES = repeatInWord(BACKSLASH);
const PERCENTS = repeatInWord(PERCENT);

/** Length of the longest escape in bytes. */
const ESCAPE_BYTES = 6;

/** Characters of escapes that stand for a character by its number, a backslash or a line break. Includes line breaks. */
const IN_ESCAPES = new Set(Buffer.from("\\%uxnr\r\n0123456789abcdefABCDEF"));
const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800;

/**
 * Returns the index before `end` from which the text may be an incomplete escape, in any nesting, or the first half of
 * a character; `end` if it is neither.
 */
export function incompleteEscapeStart(text: string, end: number): number {
  let first = end;
  for (let at = end - 1; at >= 0; at -= 1) {
    const unit = text.charCodeAt(at);
    if (unit === BACKSLASH || unit === PERCENT || isHighSurrogate(unit)) first = at;
    else if (!IN_ESCAPES.has(unit)) break;
  }
  return first;
}

/** Finds the escapes in a text, one after the other. */
class Escapes {
  private readonly words: Int32Array;
  /** Index in `spans` of the first span that may contain a place that was not searched yet. */
  private span = 0;

  /** @param spans only escapes with a byte in these ranges are returned */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly spans: Spans,
  ) {
    this.words = viewAsWords(bytes);
  }

  /**
   * Returns the start of the first escape at or after `from`; the length of the text if there is none. `from` must not
   * decrease from call to call.
   */
  nextEscape(from: number): number {
    const { bytes, spans } = this;
    for (; this.span < spans.length; this.span += 2) {
      const to = Math.min(bytes.length, spans[this.span + 1]!);
      const at = this.nextWithin(Math.max(from, spans[this.span]! - ESCAPE_BYTES + 1), to);
      if (at < to) return at;
    }
    return bytes.length;
  }

  /** Returns the next place at which an escape is possible. Call it if there is none at `from`. */
  endOfGap(from: number): number {
    const { bytes } = this;
    const near = Math.min(bytes.length, from + BYTEWISE_DISTANCE);
    let to = from + 1;
    while (to < near && bytes[to] !== BACKSLASH && bytes[to] !== PERCENT) to += 1;
    return to < near ? to : this.nextEscape(to);
  }

  /** Returns the start of the first escape in `[from, to)`; `to` or more if there is none. */
  private nextWithin(from: number, to: number): number {
    const { bytes } = this;
    let at = from;
    while (at < to) {
      if ((bytes[at] === BACKSLASH || bytes[at] === PERCENT) && decodeEscapeAt(bytes, at) !== 0) return at;
      at += 1;
      if ((at & 3) === 0) at = this.wordWithMark(at >> 2, to >> 2) << 2;
    }
    return at;
  }

  /** Returns the index of the first word in `[from, to)` that contains the first byte of an escape; `to` if there is none. */
  private wordWithMark(from: number, to: number): number {
    const { words } = this;
    let word = from;
    for (; word < to; word += 1) {
      if ((findEqualBytes(words[word]!, BACKSLASHES) | findEqualBytes(words[word]!, PERCENTS)) !== 0) break;
    }
    return word;
  }
}

/** Converts spans of the input to the corresponding spans of the output. */
class MovedSpans {
  readonly spans: number[] = [];
  /** Next start or end of a span; BEYOND_EVERY_TEXT after the last span. */
  next: number;
  constructor(private readonly before: Spans) {
    this.next = before[0] ?? BEYOND_EVERY_TEXT;
  }

  /**
   * Records that the input from `from` to `to` has been written, and that the output has the length `length` now.
   * `isSame` is false if an escape was decoded.
   */
  recordWritten(from: number, to: number, length: number, isSame: boolean): void {
    for (; this.next <= to; this.next = this.before[this.spans.length] ?? BEYOND_EVERY_TEXT) {
      this.spans.push(isSame ? length - (to - Math.max(from, this.next)) : length);
    }
  }
}

/** Writes the code unit that an escape stands for if it needs more than one byte. */
function writeUnit(writer: Writer, unit: number, from: number, length: number): number {
  writer.length = length;
  pushUnit(writer, unit, from);
  return writer.length;
}

/** Copies `[from, to)` to another array, or to an earlier index in the same array. */
function copyUnits<Units extends Uint8Array | Int32Array>(
  bytes: Units,
  from: number,
  to: number,
  target: Units,
  place: number,
): void {
  if (bytes === target && from === place) return;
  if (to - from > BYTEWISE_DISTANCE) target.set(bytes.subarray(from, to), place);
  else for (let index = from; index < to; index += 1) target[place + index - from] = bytes[index]!;
}

/**
 * Removes one layer of escapes; returns null if the layer contains none.
 * @param reused true to overwrite the memory of the input layer, which is then invalid: the output is never longer than
 * the input
 */
export function removeEscapes(layer: Layer, reused = false): Layer | null {
  const { bytes, at } = layer;
  // Only the ranges in `layer.newSpans` can contain escapes, because all others were already searched in the previous
  // layer.
  const escapes = new Escapes(bytes, layer.newSpans);
  const first = escapes.nextEscape(0);
  if (first === bytes.length) return null;
  const out = reused ? new Writer(bytes, at) : Writer.ofSize(bytes.length, at !== null);
  const { bytes: written, at: places } = out;
  const rewrittenSpans: number[] = [];
  const moved = new MovedSpans(layer.changedSpans);
  copyUnits(bytes, 0, first, written, 0);
  if (places !== null) copyUnits(at!, 0, first, places, 0);
  moved.recordWritten(0, first, first, true);
  let length = first;
  /** Index of the output up to which `rewrittenSpans` is complete. */
  let rewrittenUntil = 0;
  for (let index = first; index < bytes.length; ) {
    const meaning = decodeEscapeAt(bytes, index);
    if (meaning === 0) {
      const to = escapes.endOfGap(index);
      copyUnits(bytes, index, to, written, length);
      if (places !== null) copyUnits(at!, index, to, places, length);
      length += to - index;
      if (moved.next <= to) moved.recordWritten(index, to, length, true);
      index = to;
      continue;
    }
    if (length + DECODED_BYTES_MAX >= rewrittenUntil) {
      rewrittenUntil = length + BYTEWISE_DISTANCE;
      addSpan(rewrittenSpans, Math.max(0, length - REWRITTEN_BYTES_MAX), rewrittenUntil);
    }
    const value = meaning & 0xffff;
    const size = meaning >> LENGTH_SHIFT;
    if (value >= 0x80 && size !== PERCENT_LENGTH) length = writeUnit(out, value, at === null ? 0 : at[index]!, length);
    else {
      written[length] = value;
      if (places !== null) places[length] = at![index]!;
      if (!isLineBreak(value)) length += 1;
    }
    index += size;
    if (moved.next <= index) moved.recordWritten(index, index, length, false);
  }
  rewrittenSpans[rewrittenSpans.length - 1] = Math.min(rewrittenSpans.at(-1)!, length);
  const trimmedTexts = { bytes: written.subarray(0, length), at: places?.subarray(0, length) ?? null };
  return {
    ...trimmedTexts,
    newSpans: rewrittenSpans,
    changedSpans: moved.spans.length === 0 ? rewrittenSpans : uniteSpans(moved.spans, rewrittenSpans),
  };
}
