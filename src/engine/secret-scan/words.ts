/** A text's bytes by two and by four. Knows nothing of what they say. */

const ONES = 0x01010101;
const HIGHS = 0x80808080;

/** The bytes where numbers of that size may be read: themselves, or a copy. */
function aligned(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
}

/** The whole words of the bytes, to be read alone. */
export function wordsOf(bytes: Uint8Array): Int32Array {
  const { buffer, byteOffset, length } = aligned(bytes, Int32Array.BYTES_PER_ELEMENT);
  return new Int32Array(buffer, byteOffset, length >> 2);
}

/** The bytes by two, to be read alone. */
export function pairsOf(bytes: Uint8Array): Uint16Array {
  const { buffer, byteOffset, length } = aligned(bytes, Uint16Array.BYTES_PER_ELEMENT);
  return new Uint16Array(buffer, byteOffset, length >> 1);
}

/** A word of that byte alone. */
export const wordOf = (byte: number): number => byte * ONES;

/** Not 0 where a byte of the word is the one that `same` is made of: a byte that is 0 alone borrows from its highest bit. */
export function sameBytes(word: number, same: number): number {
  const other = word ^ same;
  return (other - ONES) & ~other & HIGHS;
}
