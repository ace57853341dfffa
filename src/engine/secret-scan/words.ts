/** A text's bytes by four. Knows nothing of what they say. */

const ONES = 0x01010101;
const HIGHS = 0x80808080;

/** The whole words of bytes that begin where their memory does. */
export const wordsOf = ({ buffer, length }: Uint8Array): Int32Array => new Int32Array(buffer, 0, length >> 2);

/** A word of that byte alone. */
export const wordOf = (byte: number): number => byte * ONES;

/** Not 0 where a byte of the word is the one that `same` is made of: a byte that is 0 alone borrows from its highest bit. */
export function sameBytes(word: number, same: number): number {
  const other = word ^ same;
  return (other - ONES) & ~other & HIGHS;
}
