/** Tables for the digits of base64, base64url and hex, and their fast decoding. */

export const HEX = new Int8Array(256).fill(-1);
for (let value = 0; value < 16; value += 1) {
  HEX[value.toString(16).charCodeAt(0)] = value;
  HEX[value.toString(16).toUpperCase().charCodeAt(0)] = value;
}
const BASE64 = new Int8Array(256).fill(-1);
for (const [value, character] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  BASE64[character.charCodeAt(0)] = value;
}
BASE64["-".charCodeAt(0)] = 62;
BASE64["_".charCodeAt(0)] = 63;

/** By two bytes in memory order: bits for the numeral systems in which both are digits. */
export const NUMERAL_PAIRS = new Uint8Array(2 ** 16);
const BASE64_BIT = 1;
const HEX_BIT = 2;
/** By two digits in memory order: the bits that the first or second two of four digits contribute to three bytes in memory. */
const FIRST_OF_FOUR = new Int32Array(2 ** 16);
const LAST_OF_FOUR = new Int32Array(2 ** 16);
/** Byte that two hex digits encode. The index is the 16-bit number of the two characters in memory order. */
const HEX_PAIR = new Uint8Array(2 ** 16);
for (let pair = 0; pair < 2 ** 16; pair += 1) {
  const bits = (BASE64[pair & 0xff]! << 6) | BASE64[pair >> 8]!;
  FIRST_OF_FOUR[pair] = (bits >> 4) | ((bits & 0xf) << 12);
  LAST_OF_FOUR[pair] = (bits & 0xf00) | ((bits & 0xff) << 16);
  if (BASE64[pair & 0xff]! >= 0 && BASE64[pair >> 8]! >= 0) NUMERAL_PAIRS[pair]! |= BASE64_BIT;
  if (HEX[pair & 0xff]! >= 0 && HEX[pair >> 8]! >= 0) NUMERAL_PAIRS[pair]! |= HEX_BIT;
  HEX_PAIR[pair] = (HEX[pair & 0xff]! << 4) | HEX[pair >> 8]!;
}

export interface Numerals {
  bitsPerDigit: number;
  /** Value of a digit by its byte, -1 for other bytes. */
  values: Int8Array;
  /** Bit in PAIRS. */
  bit: number;
  /** Number of digits that contain 8 complete bytes, wherever these begin. */
  shortest: number;
  /** Number of digits at which the first byte may begin. */
  shifts: number;
  /** Decodes `digits` digits from a pair into complete words. Returns the number of decoded digits. */
  decodeWords(pairs: Uint16Array, from: number, digits: number, output: Int32Array, started: number): number;
}

export const BASE64_NUMERALS: Numerals = {
  bitsPerDigit: 6,
  values: BASE64,
  bit: BASE64_BIT,
  shortest: 11,
  shifts: 4,
  decodeWords(pairs, from, digits, output, started) {
    const done = digits & ~15;
    for (let digit = 0, pair = from, word = started; digit < done; digit += 16, pair += 8, word += 3) {
      const a = FIRST_OF_FOUR[pairs[pair]!]! | LAST_OF_FOUR[pairs[pair + 1]!]!;
      const b = FIRST_OF_FOUR[pairs[pair + 2]!]! | LAST_OF_FOUR[pairs[pair + 3]!]!;
      const c = FIRST_OF_FOUR[pairs[pair + 4]!]! | LAST_OF_FOUR[pairs[pair + 5]!]!;
      const d = FIRST_OF_FOUR[pairs[pair + 6]!]! | LAST_OF_FOUR[pairs[pair + 7]!]!;
      output[word] = a | (b << 24);
      output[word + 1] = (b >>> 8) | (c << 16);
      output[word + 2] = (c >>> 16) | (d << 8);
    }
    return done;
  },
};

export const HEX_NUMERALS: Numerals = {
  bitsPerDigit: 4,
  values: HEX,
  bit: HEX_BIT,
  shortest: 16,
  shifts: 2,
  decodeWords(pairs, from, digits, output, started) {
    const done = digits & ~7;
    for (let digit = 0, pair = from, word = started; digit < done; digit += 8, pair += 4, word += 1) {
      const low = HEX_PAIR[pairs[pair]!]! | (HEX_PAIR[pairs[pair + 1]!]! << 8);
      output[word] = low | (HEX_PAIR[pairs[pair + 2]!]! << 16) | (HEX_PAIR[pairs[pair + 3]!]! << 24);
    }
    return done;
  },
};
