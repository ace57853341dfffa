/**
 * Decodes sequences ("runs") of base64, base64url and hex digits in a text. An encoded value may begin at any digit, so each run is decoded
 * from each possible first digit.
 */
import { decodeEscapesOnce } from "./escapes.js";
import { type DecodedLayer, stripLineBreaks } from "./layers.js";
import { BASE64_NUMERAL_SYSTEM, DIGIT_PAIR_TABLE, HEX_NUMERAL_SYSTEM, type NumeralSystem } from "./numerals.js";
import { addSpan, ENTIRE_TEXT_SPANS, type Spans } from "./spans.js";
import { viewAsUint16Numbers } from "./words.js";

/** Maximum number of bytes that line breaks and escapes may add to each byte of an encoded secret. */
const ADDED_BYTES_MAX = 6;

/** Byte that no pattern contains. At least five of these bytes separate decoded runs (sequences of digits). */
const DIGIT_SEPARATOR = 0xff;

/** Decoded form of a text, with its pairs of bytes as 16-bit numbers: `even` has pairs from even indexes, `odd` from odd ones. */
interface Digits {
  layer: DecodedLayer;
  even: Uint16Array;
  odd: Uint16Array;
}

function createDigits(layer: DecodedLayer): Digits {
  const { bytes } = layer;
  return { layer, even: viewAsUint16Numbers(bytes), odd: viewAsUint16Numbers(bytes.subarray(1)) };
}

/** Appends all runs (sequences) of digits that have the minimum length to `runs`, as [from, to, from, to …]. */
function addRuns(
  runs: number[],
  { layer: { bytes }, even }: Digits,
  numerals: NumeralSystem,
  fromIndex: number,
  toIndex: number,
): void {
  const { values, minDigits, bit } = numerals;
  for (let from = fromIndex; from + minDigits <= toIndex; ) {
    // If one of the next `minDigits` bytes is not a digit, a sequence of digits can begin only after the last such byte.
    let at = from + minDigits - 1;
    while (at >= from && values[bytes[at]!]! >= 0) at -= 1;
    if (at >= from) {
      from = at + 1;
      continue;
    }
    let to = (from + minDigits) & ~1;
    for (let pair = to >> 1; to + 8 <= toIndex; pair += 4, to += 8) {
      const commonBits =
        DIGIT_PAIR_TABLE[even[pair]!]! &
        DIGIT_PAIR_TABLE[even[pair + 1]!]! &
        DIGIT_PAIR_TABLE[even[pair + 2]!]! &
        DIGIT_PAIR_TABLE[even[pair + 3]!]!;
      if ((commonBits & bit) === 0) break;
    }
    while (to < toIndex && values[bytes[to]!]! >= 0) to += 1;
    runs.push(from, to);
    from = to + 1;
  }
}

/** Two runs (sequences of digits) are aligned in the same way if their starts differ by a multiple of this number. */
const DIGITS_PER_ALIGNMENT = 4;

/** Returns the parts of runs (sequences of digits) within `reach` bytes of a span (range to search) or of the end of the last run. */
function selectRunsNear(runs: readonly number[], spans: Spans, reach: number): readonly number[] {
  if (spans === ENTIRE_TEXT_SPANS) return runs;
  const nearRuns: number[] = [];
  for (let run = 0, span = 0; run < runs.length; run += 2) {
    const [from, to] = [runs[run]!, runs[run + 1]!];
    const firstByte = (index: number) => from + (Math.max(0, index - reach - from) & -DIGITS_PER_ALIGNMENT);
    const partsOfRun: number[] = [];
    while (span < spans.length && spans[span + 1]! < from) span += 2;
    for (let at = span; at < spans.length && spans[at]! <= to; at += 2) {
      addSpan(partsOfRun, firstByte(spans[at]!), Math.min(to, spans[at + 1]! + reach));
    }
    if (run === runs.length - 2) addSpan(partsOfRun, firstByte(to), to);
    for (const index of partsOfRun) nearRuns.push(index);
  }
  return nearRuns;
}

/** Stores the bytes of `words`, shifted by `bits`, in `output`, without the last word. Faster than decoding again. */
function shiftBits(words: Int32Array, bits: number, output: Int32Array): void {
  if (bits === 0) {
    output.set(words);
    return;
  }
  // A shifted byte has the low bits of one byte and the high bits of the next. Words are little-endian, so a shift of words does not work.
  const wholeByteBits = bits & ~7;
  const bitsInByte = bits & 7;
  const low = 0x01010101 * ((1 << bitsInByte) - 1);
  let word = words[0]!;
  for (let at = 0; at + 1 < words.length; at += 1) {
    const after = words[at + 1]!;
    const shifted = wholeByteBits === 0 ? word : (word >>> wholeByteBits) | (after << (32 - wholeByteBits));
    const next = (word >>> (wholeByteBits + 8)) | (after << (24 - wholeByteBits));
    output[at] = ((shifted << bitsInByte) & ~low) | ((next >>> (8 - bitsInByte)) & low);
    word = after;
  }
}

class DigitRuns {
  /** Bytes of all runs (sequences of digits), each decoded from its first digit. The unused bits of a run's last byte are 0. */
  private readonly words: Int32Array;
  /** Result of a shift. Allocating memory for each shift would take longer than the shift. */
  private readonly shifted: Int32Array<ArrayBuffer>;

  constructor(
    private readonly digits: Digits,
    private readonly runs: readonly number[],
    private readonly numerals: NumeralSystem,
  ) {
    let capacity = 0;
    for (let run = 0; run < runs.length; run += 2) capacity += this.countNeededBytes(runs[run]!, runs[run + 1]!);
    this.words = new Int32Array(capacity / 4);
    this.shifted = new Int32Array(capacity / 4);
    const bytes = new Uint8Array(this.words.buffer);
    let runStart = 0;
    for (let run = 0; run < runs.length; run += 2) {
      this.decode(runs[run]!, runs[run + 1]!, this.words, bytes, runStart);
      runStart += this.countNeededBytes(runs[run]!, runs[run + 1]!);
    }
  }

  /** Decodes all runs (sequences of digits) from the digit `shift` on, with separators. The result is valid until the next call. */
  decodeFrom(shift: number): Pick<DecodedLayer, "bytes" | "textIndexes"> {
    const { runs } = this;
    const { layer } = this.digits;
    const { bitsPerDigit } = this.numerals;
    shiftBits(this.words, shift * bitsPerDigit, this.shifted);
    const bytes = new Uint8Array(this.shifted.buffer);
    const textIndexes = layer.textIndexes && new Int32Array(bytes.length);
    let runStart = 0;
    let end = 0;
    for (let run = 0; run < runs.length; run += 2) {
      const from = runs[run]! + shift;
      const to = runs[run + 1]!;
      const next = runStart + this.countNeededBytes(runs[run]!, to);
      end = runStart + (((to - from) * bitsPerDigit) >> 3);
      for (let at = end; at < next; at += 1) bytes[at] = DIGIT_SEPARATOR;
      if (textIndexes !== null) this.recordPositions(from, to, textIndexes.subarray(runStart, next));
      runStart = next;
    }
    // Keeps only one separator at the end. So the end of a truncated text stays close to the end of the bytes.
    return { bytes: bytes.subarray(0, end + 1), textIndexes: textIndexes?.subarray(0, end + 1) ?? null };
  }

  private countNeededBytes(from: number, to: number): number {
    return ((((to - from) * this.numerals.bitsPerDigit) >> 3) + 8) & ~3;
  }

  /**
   * Decodes the digits from index `from` up to, but not including, `to`. Writes from the byte index `outputStart` on, a multiple of 4.
   * `words` and `bytes` are views of the same memory.
   */
  private decode(from: number, to: number, words: Int32Array, bytes: Uint8Array, outputStart: number): void {
    const { bitsPerDigit, values } = this.numerals;
    const { layer, even, odd } = this.digits;
    const pairs = from % 2 === 0 ? even : odd;
    const decodedDigits = this.numerals.decodeWords(pairs, from >> 1, to - from, words, outputStart >> 2);
    let end = outputStart + ((decodedDigits * bitsPerDigit) >> 3);
    let pendingBits = 0;
    let count = 0;
    for (let index = from + decodedDigits; index < to; index += 1) {
      pendingBits = ((pendingBits << bitsPerDigit) | values[layer.bytes[index]!]!) & 0xffff;
      count += bitsPerDigit;
      if (count < 8) continue;
      count -= 8;
      bytes[end] = pendingBits >> count;
      end += 1;
    }
    if (count > 0) bytes[end] = pendingBits << (8 - count);
  }

  /** Stores, for each decoded byte, the index of the digit in which this byte begins. */
  private recordPositions(from: number, to: number, at: Int32Array): void {
    const { bitsPerDigit } = this.numerals;
    for (let byte = 0; byte < at.length; byte += 1) {
      const digit = from + Math.floor((byte * 8) / bitsPerDigit);
      at[byte] = this.digits.layer.textIndexes![Math.min(digit, to - 1)]!;
    }
  }
}

/** Returns the index at which the digits at the end of the bytes begin. Hex digits are also base64 digits. */
export function findTrailingDigitsStart(bytes: Uint8Array): number {
  let from = bytes.length;
  while (from > 0 && BASE64_NUMERAL_SYSTEM.values[bytes[from - 1]!]! >= 0) from -= 1;
  return from;
}

/**
 * Yields the decoded runs (sequences) of digits of a layer. If a result contains escapes, also yields it without one level of them. Decodes
 * only digits near the spans (ranges to search). Each yielded layer is valid until the next one.
 * @param longestPatternBytes length in bytes of the longest pattern
 */
export function* decodeDigitLayers(
  layer: DecodedLayer,
  spans: Spans,
  longestPatternBytes: number,
): Generator<DecodedLayer> {
  if (spans.length === 0) return;
  const digits = createDigits(layer);
  const base64Runs: number[] = [];
  addRuns(base64Runs, digits, BASE64_NUMERAL_SYSTEM, 0, layer.bytes.length);
  // Hex digits are also base64 digits, so hex runs are searched only within base64 runs.
  const hexRuns: number[] = [];
  for (let run = 0; run < base64Runs.length; run += 2)
    addRuns(hexRuns, digits, HEX_NUMERAL_SYSTEM, base64Runs[run]!, base64Runs[run + 1]!);
  yield* decodeRuns(digits, base64Runs, BASE64_NUMERAL_SYSTEM, spans, longestPatternBytes);
  yield* decodeRuns(digits, hexRuns, HEX_NUMERAL_SYSTEM, spans, longestPatternBytes);
}

function* decodeRuns(
  digits: Digits,
  allRuns: readonly number[],
  numerals: NumeralSystem,
  spans: Spans,
  longestPatternBytes: number,
): Generator<DecodedLayer> {
  const { bitsPerDigit, minDigits, shiftCount } = numerals;
  const addedBytesMax = longestPatternBytes * ADDED_BYTES_MAX;
  const nearRuns = selectRunsNear(
    allRuns,
    spans,
    minDigits + Math.ceil(((longestPatternBytes + addedBytesMax) * 8) / bitsPerDigit),
  );
  let runs = new DigitRuns(digits, nearRuns, numerals);
  let includesAllDigits = nearRuns === allRuns;
  for (let shift = 0; shift < shiftCount && allRuns.length > 0; ) {
    const { bytes, textIndexes } = runs.decodeFrom(shift);
    const layer = { ...stripLineBreaks(bytes, textIndexes), newSpans: ENTIRE_TEXT_SPANS, changedSpans: [] };
    yield layer;
    const inner = decodeEscapesOnce(layer, true);
    if (inner !== null) yield inner;
    const removedBytes = bytes.length - (inner ?? layer).bytes.length;
    if (removedBytes > addedBytesMax && !includesAllDigits) {
      // An encoded secret with so many line breaks and escapes can be longer than the decoded digits. So more digits are decoded.
      includesAllDigits = true;
      runs = new DigitRuns(digits, selectRunsNear(allRuns, spans, digits.layer.bytes.length), numerals);
    } else shift += 1;
  }
}
