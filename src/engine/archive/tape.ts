/**
 * Writes parts as a tar file whose last part contains the digest of all other parts. The reader accepts only regular
 * files with plain names. It rejects links and everything else that tar allows.
 */
import { createHash, type Hash } from "node:crypto";
import { Header } from "tar";
import { damagedArchive } from "./failure.js";

/** A part of an archive: one file of the tar file, completely in memory. */
export interface TapePart {
  name: string;
  content: Buffer;
}

/** Maximum size of a part in bytes. It is limited, because readers hold a whole part in memory. */
export const PART_MAX_BYTES = 8 * 2 ** 20;
const BLOCK_BYTES = 512;
const END_PART_NAME = "end.json";
/** Matches plain names between slashes, without `..`. */
const NAME_PATTERN = /^[a-z0-9_]+(?:\/[a-z0-9_]+)*(?:\.json)?$/;
const NAME_MAX_LENGTH = 99;

const isValidName = (name: string): boolean => name.length <= NAME_MAX_LENGTH && NAME_PATTERN.test(name);

function addToDigest(hash: Hash, { name, content }: TapePart): void {
  hash.update(`${name}\n${content.length}\n`).update(content);
}

function* blocksOf({ name, content }: TapePart): Generator<Buffer> {
  if (!isValidName(name) || content.length > PART_MAX_BYTES)
    throw new Error(`${name} is not a valid name in an archive`);
  const header = Buffer.alloc(BLOCK_BYTES);
  const fields = {
    path: name,
    mode: 0o600,
    uid: 0,
    gid: 0,
    size: content.length,
    mtime: new Date(0),
    type: "File",
  } as const;
  new Header(fields).encode(header);
  yield header;
  yield content;
  yield Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES);
}

export async function* writeTape(parts: AsyncIterable<TapePart>): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let count = 0;
  for await (const part of parts) {
    addToDigest(hash, part);
    count += 1;
    yield* blocksOf(part);
  }
  const trailer = { parts: count, sha256: hash.digest("hex") };
  yield* blocksOf({ name: END_PART_NAME, content: Buffer.from(`${JSON.stringify(trailer)}\n`) });
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

/** Reads a stream in pieces of requested sizes. */
class ByteReader {
  private buffered: Buffer[] = [];
  private size = 0;
  private readonly source: AsyncIterator<Buffer>;

  constructor(bytes: AsyncIterable<Buffer>) {
    this.source = bytes[Symbol.asyncIterator]();
  }

  /** Reads `count` bytes; fewer only at the end of the stream. */
  async readBytes(count: number): Promise<Buffer> {
    while (this.size < count) {
      const { value, done } = await this.source.next();
      if (done) break;
      this.buffered.push(value);
      this.size += value.length;
    }
    const all = this.buffered.length === 1 ? this.buffered[0]! : Buffer.concat(this.buffered);
    const piece = all.subarray(0, count);
    this.buffered = [all.subarray(piece.length)];
    this.size = all.length - piece.length;
    return piece;
  }

  async close(): Promise<void> {
    await this.source.return?.();
  }
}

/** Returns the next part; null at an empty block, which marks the end of a tar file. */
async function readNextPart(bytes: ByteReader): Promise<TapePart | null> {
  const block = await bytes.readBytes(BLOCK_BYTES);
  if (block.length < BLOCK_BYTES) throw damagedArchive("the last bytes are missing");
  const header = new Header(block, 0);
  if (header.nullBlock) return null;
  const { path = "", size = -1, type, cksumValid, linkpath } = header;
  if (!cksumValid) throw damagedArchive("the header of a part cannot be read");
  if (type !== "File" || linkpath || !isValidName(path))
    throw damagedArchive("the archive contains a part that no backup contains");
  if (!Number.isSafeInteger(size) || size < 0 || size > PART_MAX_BYTES)
    throw damagedArchive(`the size of the part ${path} is not valid`);
  const padded = Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  const content = await bytes.readBytes(padded);
  if (content.length < padded) throw damagedArchive("the last bytes are missing");
  return { name: path, content: content.subarray(0, size) };
}

function isEndOfTape({ name, content }: TapePart, count: number, sha256: string): boolean {
  if (name !== END_PART_NAME) return false;
  const expected = `${JSON.stringify({ parts: count, sha256 })}\n`;
  if (content.toString() !== expected) throw damagedArchive("the parts differ from those that were written");
  return true;
}

/**
 * Yields the parts of a tar file. Do not use a part before the last one has been yielded, because the digest of all
 * parts is verified at the end.
 * @throws ArchiveError if the file is damaged
 */
export async function* readTape(stream: AsyncIterable<Buffer>): AsyncGenerator<TapePart> {
  const bytes = new ByteReader(stream);
  const hash = createHash("sha256");
  try {
    for (let count = 0; ; count += 1) {
      const part = await readNextPart(bytes);
      if (part === null) throw damagedArchive("the last bytes are missing");
      if (isEndOfTape(part, count, hash.copy().digest("hex"))) break;
      addToDigest(hash, part);
      yield part;
    }
    if ((await readNextPart(bytes)) !== null || (await bytes.readBytes(2 * BLOCK_BYTES)).length !== BLOCK_BYTES) {
      throw damagedArchive("there are bytes after the end of the archive");
    }
  } finally {
    await bytes.close();
  }
}
