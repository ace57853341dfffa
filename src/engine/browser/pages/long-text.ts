/** Collects a long text of a page as UTF-8 bytes, which the database and HTTP responses use without decoding. */
import { RESULT_MAX_BYTES } from "../../../limits.js";

const TEXT_MAX_BYTES = RESULT_MAX_BYTES + 1_024;
const CHARACTER_MAX_BYTES = 3;

/** Stores at most TEXT_MAX_BYTES, because a longer text is too large for the result of a run. */
export class LongTextBuffer {
  /** Buffer for a text of ASCII characters. It is replaced by a larger buffer if the text has other characters. */
  private memory: Buffer;
  private readonly maxBytes: number;
  private byteLength = 0;
  /** First half of a surrogate pair whose second half is in the next part. */
  private pendingHighSurrogate = "";

  constructor(characters: number) {
    this.maxBytes = Math.min(characters * CHARACTER_MAX_BYTES, TEXT_MAX_BYTES);
    this.memory = Buffer.allocUnsafeSlow(Math.min(characters, TEXT_MAX_BYTES));
  }

  add(part: string): void {
    const text = this.pendingHighSurrogate + part;
    const isSplit = (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
    this.pendingHighSurrogate = isSplit ? text.slice(-1) : "";
    this.write(isSplit ? text.slice(0, -1) : text);
  }

  /** True if the text is too large for the result of a run. Further text is ignored. */
  get isFull(): boolean {
    return this.byteLength >= TEXT_MAX_BYTES - CHARACTER_MAX_BYTES;
  }

  toBytes(): Buffer {
    this.write(this.pendingHighSurrogate);
    return this.memory.subarray(0, this.byteLength);
  }

  private write(text: string): void {
    const { memory, maxBytes } = this;
    if (memory.length < maxBytes && this.byteLength + Buffer.byteLength(text) > memory.length) {
      this.memory = Buffer.allocUnsafeSlow(maxBytes);
      memory.copy(this.memory, 0, 0, this.byteLength);
    }
    this.byteLength += this.memory.write(text, this.byteLength);
  }
}
