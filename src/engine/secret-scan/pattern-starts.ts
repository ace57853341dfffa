/**
 * Finds the indexes in bytes at which any of many patterns may begin. Misses no index, but also returns indexes at which no pattern begins.
 * Reads one 32-bit word at each multiple of four, and other bytes only if this word occurs near the start of a pattern.
 */

/** A pattern of this length contains a complete aligned 32-bit word, at whichever index it starts. */
export const PATTERN_MIN_BYTES = 8;
const WORD_BYTES = 4;

const WORD_HASH_FACTOR = 0x9e3779b1;
const SECOND_HASH_FACTOR = 0x85ebca6b;
/** Slots of a hash table for each of its entries. The number is high, so that few words match the table by chance. */
const SLOTS_PER_WORD = 16;
const WORD_TABLE_BITS_MIN = 14;
const WORD_TABLE_BITS_MAX = 20;
const EIGHT_BYTE_TABLE_BITS_MIN = 12;
const EIGHT_BYTE_TABLE_BITS_MAX = 24;

const computeFilterBits = (entries: number, min: number, max: number): number =>
  Math.min(max, Math.max(min, Math.ceil(Math.log2(entries * SLOTS_PER_WORD + 1))));

const readWordAt = (bytes: Uint8Array, index: number): number =>
  bytes[index]! | (bytes[index + 1]! << 8) | (bytes[index + 2]! << 16) | (bytes[index + 3]! << 24);

export class PatternStartFinder {
  /** Table by the hash of a 32-bit word. Bit `n` is set if a pattern contains a word with this hash at byte offset `n`. */
  private readonly wordOffsetsByHash: Uint8Array;
  private readonly wordShift: number;
  /** Bit table: a bit is set if the first eight bytes of a pattern have this hash. */
  private readonly eightByteHashes: Int32Array;
  private readonly eightShift: number;

  /** @param patterns each has at least PATTERN_MIN_BYTES bytes */
  constructor(patterns: readonly Uint8Array[]) {
    const wordTableBits = computeFilterBits(patterns.length * WORD_BYTES, WORD_TABLE_BITS_MIN, WORD_TABLE_BITS_MAX);
    const eightByteTableBits = computeFilterBits(patterns.length, EIGHT_BYTE_TABLE_BITS_MIN, EIGHT_BYTE_TABLE_BITS_MAX);
    this.wordOffsetsByHash = new Uint8Array(2 ** wordTableBits);
    this.wordShift = 32 - wordTableBits;
    this.eightByteHashes = new Int32Array(2 ** (eightByteTableBits - 5));
    this.eightShift = 32 - eightByteTableBits;
    for (const pattern of patterns) {
      for (let offset = 0; offset < WORD_BYTES; offset += 1) {
        this.wordOffsetsByHash[Math.imul(readWordAt(pattern, offset), WORD_HASH_FACTOR) >>> this.wordShift]! |=
          1 << offset;
      }
      const bit = this.getEightByteBit(readWordAt(pattern, 0), readWordAt(pattern, WORD_BYTES));
      this.eightByteHashes[bit >>> 5]! |= 1 << (bit & 31);
    }
  }

  get bytes(): number {
    return this.wordOffsetsByHash.length + this.eightByteHashes.byteLength;
  }

  private getEightByteBit(first: number, second: number): number {
    const hash = Math.imul(first, WORD_HASH_FACTOR);
    const both = Math.imul((hash ^ (hash >>> 15)) + second, SECOND_HASH_FACTOR);
    return Math.imul(both ^ (both >>> 13), WORD_HASH_FACTOR) >>> this.eightShift;
  }

  /**
   * Returns the next index from `from` up to, but not including, `to` at which a pattern may begin; -1 if there is none. At least
   * PATTERN_MIN_BYTES bytes must follow each of these indexes.
   * @param words the same bytes as complete 32-bit words
   */
  findNextStart(bytes: Uint8Array, words: Int32Array, from: number, to: number): number {
    const { wordOffsetsByHash, wordShift, eightByteHashes } = this;
    const lastWord = Math.min(words.length, (to + WORD_BYTES + 2) >> 2);
    for (let word = (from + WORD_BYTES - 1) >> 2; word < lastWord; word += 1) {
      // Checks four words at once, because patterns begin at very few indexes.
      while (
        word + 4 <= lastWord &&
        (wordOffsetsByHash[Math.imul(words[word]!, WORD_HASH_FACTOR) >>> wordShift]! |
          wordOffsetsByHash[Math.imul(words[word + 1]!, WORD_HASH_FACTOR) >>> wordShift]! |
          wordOffsetsByHash[Math.imul(words[word + 2]!, WORD_HASH_FACTOR) >>> wordShift]! |
          wordOffsetsByHash[Math.imul(words[word + 3]!, WORD_HASH_FACTOR) >>> wordShift]!) ===
          0
      ) {
        word += 4;
      }
      if (word === lastWord) break;
      let offsets = wordOffsetsByHash[Math.imul(words[word]!, WORD_HASH_FACTOR) >>> wordShift]!;
      while (offsets !== 0) {
        const offset = 31 - Math.clz32(offsets);
        offsets ^= 1 << offset;
        const at = word * WORD_BYTES - offset;
        if (at < from || at >= to) continue;
        const bit = this.getEightByteBit(readWordAt(bytes, at), readWordAt(bytes, at + WORD_BYTES));
        if ((eightByteHashes[bit >>> 5]! & (1 << (bit & 31))) !== 0) return at;
      }
      // Skips a word in a run of equal words: the previous word with the same neighbours has just been rejected.
      if (words[word - 1] === words[word] && word * WORD_BYTES - WORD_BYTES >= from) {
        while (word + 2 < lastWord && words[word + 1] === words[word] && words[word + 2] === words[word]) word += 1;
      }
    }
    return -1;
  }
}
