/** Layers: the forms of a text in which secrets are searched, such as after one step of decoding. Each is UTF-8 without line breaks. */
import { ENTIRE_TEXT_SPANS, type Spans } from "./spans.js";

export interface DecodedLayer {
  bytes: Uint8Array;
  /** Index of each byte's character in the original text; null if the caller did not request these indexes. */
  textIndexes: Int32Array | null;
  /** Ranges of bytes that differ from the previous layer, from which this layer was made. */
  newSpans: Spans;
  /** Ranges of bytes that differ from the original text. */
  changedSpans: Spans;
}

export const isLineBreak = (byte: number): boolean => byte === 10 || byte === 13;

export class ByteWriter {
  length = 0;
  constructor(
    readonly bytes: Uint8Array,
    readonly textIndexes: Int32Array | null,
  ) {}
  static createWithSize(capacity: number, withTextIndexes: boolean): ByteWriter {
    return new ByteWriter(new Uint8Array(capacity), withTextIndexes ? new Int32Array(capacity) : null);
  }
  push(byte: number, from: number): void {
    this.bytes[this.length] = byte;
    if (this.textIndexes !== null) this.textIndexes[this.length] = from;
    this.length += 1;
  }
}

/** If the last character that was written is a lone high surrogate, returns it as a UTF-16 code unit; otherwise 0. */
function getLastHighSurrogate({ bytes, length }: ByteWriter): number {
  const secondByte = bytes[length - 2] ?? 0;
  if (bytes[length - 3] !== 0xed || secondByte < 0xa0 || secondByte >= 0xb0) return 0;
  return 0xd000 | ((secondByte & 63) << 6) | (bytes[length - 1]! & 63);
}

/** Replaces the high surrogate that was written last, and the low surrogate `low`, with the character that both form. */
function joinSurrogates(writer: ByteWriter, high: number, low: number, from: number): void {
  const point = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
  writer.length -= 3;
  const textIndex = writer.textIndexes === null ? from : writer.textIndexes[writer.length]!;
  writer.push(0xf0 | (point >> 18), textIndex);
  for (const shift of [12, 6, 0]) writer.push(0x80 | ((point >> shift) & 63), textIndex);
}

/** Writes even a lone surrogate in UTF-8. A low surrogate may overwrite the last three bytes, which contain its other half. */
export function writeCodeUnitAsUtf8(writer: ByteWriter, unit: number, from: number): void {
  const high = (unit & 0xfc00) === 0xdc00 ? getLastHighSurrogate(writer) : 0;
  if (high !== 0) joinSurrogates(writer, high, unit, from);
  else if (unit < 0x80) writer.push(unit, from);
  else if (unit < 0x800) {
    writer.push(0xc0 | (unit >> 6), from);
    writer.push(0x80 | (unit & 63), from);
  } else {
    writer.push(0xe0 | (unit >> 12), from);
    writer.push(0x80 | ((unit >> 6) & 63), from);
    writer.push(0x80 | (unit & 63), from);
  }
}

/** Returns the first index of a byte; the length of the array if there is none. `Buffer.indexOf` compares many bytes at once. */
function findByte(bytes: Uint8Array, byte: number): number {
  const index = Buffer.prototype.indexOf.call(bytes, byte);
  return index === -1 ? bytes.length : index;
}

/** Table by byte value: 0 for line breaks, which are removed, and 1 for all other bytes. */
const IS_NOT_LINE_BREAK = new Uint8Array(256).fill(1);
IS_NOT_LINE_BREAK[10] = 0;
IS_NOT_LINE_BREAK[13] = 0;

/** Removes line breaks in place, from the index `first` of one of them on. Returns the new length. */
function removeLineBreakBytes(bytes: Uint8Array, first: number): number {
  let length = first;
  for (let index = first; index < bytes.length; index += 1) {
    const byte = bytes[index]!;
    bytes[length] = byte;
    length += IS_NOT_LINE_BREAK[byte]!;
  }
  return length;
}

/** Removes the indexes of line breaks from `textIndexes`. Call it before the line breaks are removed from `bytes`. */
function removeLineBreakIndexes(textIndexes: Int32Array, bytes: Uint8Array, first: number): void {
  let length = first;
  for (let index = first; index < bytes.length; index += 1) {
    textIndexes[length] = textIndexes[index]!;
    length += IS_NOT_LINE_BREAK[bytes[index]!]!;
  }
}

/** Removes line breaks. Changes `bytes` and `textIndexes` in place, and returns their remaining parts. */
export function stripLineBreaks(
  bytes: Uint8Array,
  textIndexes: Int32Array | null,
): Pick<DecodedLayer, "bytes" | "textIndexes"> {
  const first = Math.min(findByte(bytes, 10), findByte(bytes, 13));
  if (first === bytes.length) return { bytes, textIndexes };
  if (textIndexes !== null) removeLineBreakIndexes(textIndexes, bytes, first);
  const length = removeLineBreakBytes(bytes, first);
  return { bytes: bytes.subarray(0, length), textIndexes: textIndexes?.subarray(0, length) ?? null };
}

const UTF8_ENCODER = new TextEncoder();

/** Returns the first layer of a text: its UTF-8 bytes without line breaks. */
export function createInitialLayer(text: string, withTextIndexes: boolean): DecodedLayer {
  const firstLayerSpans = { newSpans: ENTIRE_TEXT_SPANS, changedSpans: [] };
  // `encode` would replace a lone surrogate, although an escape after it may stand for its other half.
  if (!withTextIndexes && text.isWellFormed())
    return { ...stripLineBreaks(UTF8_ENCODER.encode(text), null), ...firstLayerSpans };
  const writer = ByteWriter.createWithSize(text.length * 3, withTextIndexes);
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (!isLineBreak(unit)) writeCodeUnitAsUtf8(writer, unit, index);
  }
  return {
    bytes: writer.bytes.subarray(0, writer.length),
    textIndexes: writer.textIndexes?.subarray(0, writer.length) ?? null,
    ...firstLayerSpans,
  };
}
