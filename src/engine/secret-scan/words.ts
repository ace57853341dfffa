/** Interprets bytes as 16-bit or 32-bit numbers, without copying them if they are aligned in memory. */

const LOW_BIT_OF_EACH_BYTE = 0x01010101;
const HIGH_BIT_OF_EACH_BYTE = 0x80808080;

function alignBytes(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
}

/** Returns the bytes as 32-bit words, without an incomplete word at the end. Callers must not change the words. */
export function viewAsInt32Words(bytes: Uint8Array): Int32Array {
  const { buffer, byteOffset, length } = alignBytes(bytes, Int32Array.BYTES_PER_ELEMENT);
  return new Int32Array(buffer, byteOffset, length >> 2);
}

/** Returns the bytes as 16-bit numbers. Callers must not change the numbers. */
export function viewAsUint16Numbers(bytes: Uint8Array): Uint16Array {
  const { buffer, byteOffset, length } = alignBytes(bytes, Uint16Array.BYTES_PER_ELEMENT);
  return new Uint16Array(buffer, byteOffset, length >> 1);
}

export const repeatByteInWord = (byte: number): number => byte * LOW_BIT_OF_EACH_BYTE;

/**
 * Returns a number other than 0 if a byte of `word` equals the byte in `repeatedByte`. Equal bytes have the difference 0, and subtracting 1
 * from it sets the highest bit.
 */
export function findEqualBytes(word: number, repeatedByte: number): number {
  const difference = word ^ repeatedByte;
  return (difference - LOW_BIT_OF_EACH_BYTE) & ~difference & HIGH_BIT_OF_EACH_BYTE;
}
