/** Collects a long text of a page as UTF-8 bytes in shared memory, which threads, the database and HTTP responses use without a copy. */
import { RESULT_MAX_BYTES } from "../../../limits.js";

const TEXT_MAX_BYTES = RESULT_MAX_BYTES + 1_024;
const CHARACTER_MAX_BYTES = 3;
const WORD_MAX_CHARACTERS = 32;

/** Stores at most TEXT_MAX_BYTES, because a longer text is too large for the result of a run. */
export class LongTextBuffer {
  private readonly memory: Buffer;
  private end = 0;
  /** First half of a surrogate pair whose second half is in the next part. */
  private pendingHighSurrogate = "";

  constructor(characters: number) {
    const bytes = Math.min(characters * CHARACTER_MAX_BYTES, TEXT_MAX_BYTES);
    this.memory = Buffer.from(new SharedArrayBuffer(bytes));
  }

  add(part: string): void {
    const text = this.pendingHighSurrogate + part;
    const isSplit = (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
    this.pendingHighSurrogate = isSplit ? text.slice(-1) : "";
    this.end += this.memory.write(isSplit ? text.slice(0, -1) : text, this.end);
  }

  toBytes(): Buffer {
    const end = this.end + this.memory.write(this.pendingHighSurrogate, this.end);
    return this.memory.subarray(0, end);
  }
}

export function splitFirstWord(answer: string | Buffer): [word: string, rest: string | Buffer] {
  const start = typeof answer === "string" ? answer : answer.toString("latin1", 0, WORD_MAX_CHARACTERS);
  const end = start.indexOf(" ");
  return [start.slice(0, end), typeof answer === "string" ? answer.slice(end + 1) : answer.subarray(end + 1)];
}
