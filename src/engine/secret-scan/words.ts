/** Views the same bytes as 16-bit or 32-bit numbers. */

const LOW_BIT_OF_EACH_BYTE = 0x01010101;
const HIGH_BIT_OF_EACH_BYTE = 0x80808080;

/** Returns the bytes if they are aligned, otherwise an aligned copy. */
function alignedBytes(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
}

/** Complete 32-bit words of the bytes; read only. */
export function wordsOf(bytes: Uint8Array): Int32Array {
  const { buffer, byteOffset, length } = alignedBytes(bytes, Int32Array.BYTES_PER_ELEMENT);
  return new Int32Array(buffer, byteOffset, length >> 2);
}

/** The bytes as 16-bit numbers; read only. */
export function pairsOf(bytes: Uint8Array): Uint16Array {
  const { buffer, byteOffset, length } = alignedBytes(bytes, Uint16Array.BYTES_PER_ELEMENT);
  return new Uint16Array(buffer, byteOffset, length >> 1);
}

/** Returns a word that consists of four times this byte. */
export const repeatInWord = (byte: number): number => byte * LOW_BIT_OF_EACH_BYTE;

/** Returns a number other than 0 if a byte of the word equals the byte of `same`, because only a zero byte borrows into its highest bit. */
export function sameBytes(word: number, same: number): number {
  const other = word ^ same;
  return (other - LOW_BIT_OF_EACH_BYTE) & ~other & HIGH_BIT_OF_EACH_BYTE;
}
