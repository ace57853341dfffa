/** Tables for the digits of base64, base64url and hex, and functions that decode several digits at once. */

export const HEX_DIGIT_VALUES = new Int8Array(256).fill(-1);
for (let value = 0; value < 16; value += 1) {
  HEX_DIGIT_VALUES[value.toString(16).charCodeAt(0)] = value;
  HEX_DIGIT_VALUES[value.toString(16).toUpperCase().charCodeAt(0)] = value;
}
const BASE64_VALUES = new Int8Array(256).fill(-1);
for (const [value, character] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  BASE64_VALUES[character.charCodeAt(0)] = value;
}
BASE64_VALUES["-".charCodeAt(0)] = 62;
BASE64_VALUES["_".charCodeAt(0)] = 63;

/** Table by two adjacent bytes, as a 16-bit number in memory order. The bits show in which numeral systems both are digits. */
export const DIGIT_PAIR_TABLE = new Uint8Array(2 ** 16);
const BASE64_BIT = 1;
const HEX_BIT = 2;
/** Table by the first two of four base64 digits (16-bit number): the bits that they contribute to the three decoded bytes. */
const FIRST_TWO_DIGIT_BITS = new Int32Array(2 ** 16);
const LAST_TWO_DIGIT_BITS = new Int32Array(2 ** 16);
/** Table by two adjacent hex digits, as a 16-bit number in memory order: the byte that these digits encode. */
const BYTE_BY_HEX_PAIR = new Uint8Array(2 ** 16);
for (let pair = 0; pair < 2 ** 16; pair += 1) {
  const bits = (BASE64_VALUES[pair & 0xff]! << 6) | BASE64_VALUES[pair >> 8]!;
  FIRST_TWO_DIGIT_BITS[pair] = (bits >> 4) | ((bits & 0xf) << 12);
  LAST_TWO_DIGIT_BITS[pair] = (bits & 0xf00) | ((bits & 0xff) << 16);
  if (BASE64_VALUES[pair & 0xff]! >= 0 && BASE64_VALUES[pair >> 8]! >= 0) DIGIT_PAIR_TABLE[pair]! |= BASE64_BIT;
  if (HEX_DIGIT_VALUES[pair & 0xff]! >= 0 && HEX_DIGIT_VALUES[pair >> 8]! >= 0) DIGIT_PAIR_TABLE[pair]! |= HEX_BIT;
  BYTE_BY_HEX_PAIR[pair] = (HEX_DIGIT_VALUES[pair & 0xff]! << 4) | HEX_DIGIT_VALUES[pair >> 8]!;
}

export interface NumeralSystem {
  bitsPerDigit: number;
  /** Value of each digit, by its character code; -1 for characters that are no digits. */
  values: Int8Array;
  /** Bit of this numeral system in DIGIT_PAIR_TABLE. */
  bit: number;
  /** Minimum number of digits that can encode 8 bytes. Shorter sequences are not searched. */
  minDigits: number;
  /** Number of first digits of a sequence that must be tried as the start of the encoded bytes. */
  shiftCount: number;
  /** Decodes `digits` digits into complete words. Writes to `output` from `outputStart` on. Returns the number of decoded digits. */
  decodeWords(pairs: Uint16Array, from: number, digits: number, output: Int32Array, outputStart: number): number;
}

export const BASE64_NUMERAL_SYSTEM: NumeralSystem = {
  bitsPerDigit: 6,
  values: BASE64_VALUES,
  bit: BASE64_BIT,
  minDigits: 11,
  shiftCount: 4,
  decodeWords(pairs, from, digits, output, outputStart) {
    const decodedDigits = digits & ~15;
    for (let digit = 0, pair = from, word = outputStart; digit < decodedDigits; digit += 16, pair += 8, word += 3) {
      const a = FIRST_TWO_DIGIT_BITS[pairs[pair]!]! | LAST_TWO_DIGIT_BITS[pairs[pair + 1]!]!;
      const b = FIRST_TWO_DIGIT_BITS[pairs[pair + 2]!]! | LAST_TWO_DIGIT_BITS[pairs[pair + 3]!]!;
      const c = FIRST_TWO_DIGIT_BITS[pairs[pair + 4]!]! | LAST_TWO_DIGIT_BITS[pairs[pair + 5]!]!;
      const d = FIRST_TWO_DIGIT_BITS[pairs[pair + 6]!]! | LAST_TWO_DIGIT_BITS[pairs[pair + 7]!]!;
      output[word] = a | (b << 24);
      output[word + 1] = (b >>> 8) | (c << 16);
      output[word + 2] = (c >>> 16) | (d << 8);
    }
    return decodedDigits;
  },
};

export const HEX_NUMERAL_SYSTEM: NumeralSystem = {
  bitsPerDigit: 4,
  values: HEX_DIGIT_VALUES,
  bit: HEX_BIT,
  minDigits: 16,
  shiftCount: 2,
  decodeWords(pairs, from, digits, output, outputStart) {
    const decodedDigits = digits & ~7;
    for (let digit = 0, pair = from, word = outputStart; digit < decodedDigits; digit += 8, pair += 4, word += 1) {
      const low = BYTE_BY_HEX_PAIR[pairs[pair]!]! | (BYTE_BY_HEX_PAIR[pairs[pair + 1]!]! << 8);
      output[word] = low | (BYTE_BY_HEX_PAIR[pairs[pair + 2]!]! << 16) | (BYTE_BY_HEX_PAIR[pairs[pair + 3]!]! << 24);
    }
    return decodedDigits;
  },
};
