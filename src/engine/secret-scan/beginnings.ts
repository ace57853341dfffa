/**
 * Finds places in bytes where any of many patterns may begin. Reads one 32-bit word at each multiple of four, and other
 * bytes only if the word occurs near the start of a pattern. Misses no place; the caller rejects false ones.
 */

/** Minimum length of a pattern. A pattern of this length contains a complete word at a multiple of four, wherever it starts. */
export const PATTERN_MIN_BYTES = 8;
const WORD_BYTES = 4;

const WORD_HASH_FACTOR = 0x9e3779b1;
const SECOND_HASH_FACTOR = 0x85ebca6b;
/** Number of slots in the hash table for each entry. It is high, so that few words match the table by chance. */
const SLOTS_PER_WORD = 16;
const WORD_BITS_MIN = 14;
const WORD_BITS_MAX = 20;
const EIGHT_BITS_MIN = 12;
const EIGHT_BITS_MAX = 24;

const filterBits = (entries: number, min: number, max: number): number =>
  Math.min(max, Math.max(min, Math.ceil(Math.log2(entries * SLOTS_PER_WORD + 1))));

const wordAt = (bytes: Uint8Array, index: number): number =>
  bytes[index]! | (bytes[index + 1]! << 8) | (bytes[index + 2]! << 16) | (bytes[index + 3]! << 24);

export class Beginnings {
  /** Table by the hash of a word: bit `n` is set if a pattern has a word with this hash `n` bytes after its start. */
  private readonly words: Uint8Array;
  private readonly wordShift: number;
  /** Bit table by the hash of eight bytes: set for the first eight bytes of each pattern. */
  private readonly eights: Int32Array;
  private readonly eightShift: number;

  /** @param patterns each of at least PATTERN_MIN_BYTES */
  constructor(patterns: readonly Uint8Array[]) {
    const wordBits = filterBits(patterns.length * WORD_BYTES, WORD_BITS_MIN, WORD_BITS_MAX);
    const eightBits = filterBits(patterns.length, EIGHT_BITS_MIN, EIGHT_BITS_MAX);
    this.words = new Uint8Array(2 ** wordBits);
    this.wordShift = 32 - wordBits;
    this.eights = new Int32Array(2 ** (eightBits - 5));
    this.eightShift = 32 - eightBits;
    for (const pattern of patterns) {
      for (let offset = 0; offset < WORD_BYTES; offset += 1) {
        this.words[Math.imul(wordAt(pattern, offset), WORD_HASH_FACTOR) >>> this.wordShift]! |= 1 << offset;
      }
      const bit = this.eightBit(wordAt(pattern, 0), wordAt(pattern, WORD_BYTES));
      this.eights[bit >>> 5]! |= 1 << (bit & 31);
    }
  }

  /** Memory of the tables in bytes. */
  get bytes(): number {
    return this.words.length + this.eights.byteLength;
  }

  private eightBit(first: number, second: number): number {
    const hash = Math.imul(first, WORD_HASH_FACTOR);
    const both = Math.imul((hash ^ (hash >>> 15)) + second, SECOND_HASH_FACTOR);
    return Math.imul(both ^ (both >>> 13), WORD_HASH_FACTOR) >>> this.eightShift;
  }

  /**
   * Returns the first place in `[from, to)` where a pattern may begin; -1 if there is none.
   * @param words the same bytes as 32-bit words, only complete ones
   * @param to at least PATTERN_MIN_BYTES must follow each place before `to`
   */
  nextPlace(bytes: Uint8Array, words: Int32Array, from: number, to: number): number {
    const { words: known, wordShift, eights } = this;
    const lastWord = Math.min(words.length, (to + WORD_BYTES + 2) >> 2);
    for (let word = (from + WORD_BYTES - 1) >> 2; word < lastWord; word += 1) {
      // Almost nowhere a pattern begins, so four words are checked together.
      while (
        word + 4 <= lastWord &&
        (known[Math.imul(words[word]!, WORD_HASH_FACTOR) >>> wordShift]! |
          known[Math.imul(words[word + 1]!, WORD_HASH_FACTOR) >>> wordShift]! |
          known[Math.imul(words[word + 2]!, WORD_HASH_FACTOR) >>> wordShift]! |
          known[Math.imul(words[word + 3]!, WORD_HASH_FACTOR) >>> wordShift]!) ===
          0
      ) {
        word += 4;
      }
      if (word === lastWord) break;
      let offsets = known[Math.imul(words[word]!, WORD_HASH_FACTOR) >>> wordShift]!;
      while (offsets !== 0) {
        const offset = 31 - Math.clz32(offsets);
        offsets ^= 1 << offset;
        const at = word * WORD_BYTES - offset;
        if (at < from || at >= to) continue;
        const bit = this.eightBit(wordAt(bytes, at), wordAt(bytes, at + WORD_BYTES));
        if ((eights[bit >>> 5]! & (1 << (bit & 31))) !== 0) return at;
      }
      // In a run of equal words, the previous word with the same neighbours has just been rejected.
      if (words[word - 1] === words[word] && word * WORD_BYTES - WORD_BYTES >= from) {
        while (word + 2 < lastWord && words[word + 1] === words[word] && words[word + 2] === words[word]) word += 1;
      }
    }
    return -1;
  }
}
