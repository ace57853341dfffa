/**
 * Writes and reads tar archives. The last file of an archive contains the digest of all other files. The reader accepts only regular files
 * with plain names, and rejects links and everything else that tar allows.
 */
import { createHash, type Hash } from "node:crypto";
import { Header } from "tar";
import { createDamagedFileError } from "./failure.js";

export interface ArchiveFile {
  name: string;
  content: Buffer;
}

/** Maximum size of a file in an archive, because readers hold a whole file in memory. */
const ARCHIVE_FILE_MAX_BYTES = 8 * 2 ** 20;
const BLOCK_BYTES = 512;
const END_FILE_NAME = "end.json";
/** Lowercase names that are separated by slashes, without `..`, and optionally with the ending `.json`. */
const FILE_NAME_PATTERN = /^[a-z0-9_]+(?:\/[a-z0-9_]+)*(?:\.json)?$/;
const FILE_NAME_MAX_CHARACTERS = 99;

const isValidFileName = (name: string): boolean =>
  name.length <= FILE_NAME_MAX_CHARACTERS && FILE_NAME_PATTERN.test(name);

function addToDigest(hash: Hash, { name, content }: ArchiveFile): void {
  hash.update(`${name}\n${content.length}\n`).update(content);
}

function* encodeFile({ name, content }: ArchiveFile): Generator<Buffer> {
  if (!isValidFileName(name) || content.length > ARCHIVE_FILE_MAX_BYTES)
    throw new Error(
      `the archive cannot contain ${name}: the name is not valid, or the content is larger than ${ARCHIVE_FILE_MAX_BYTES} bytes`,
    );
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

export async function* writeTar(files: AsyncIterable<ArchiveFile>): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let count = 0;
  for await (const file of files) {
    addToDigest(hash, file);
    count += 1;
    yield* encodeFile(file);
  }
  const trailer = { parts: count, sha256: hash.digest("hex") };
  yield* encodeFile({ name: END_FILE_NAME, content: Buffer.from(`${JSON.stringify(trailer)}\n`) });
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

class ByteReader {
  private buffered: Buffer[] = [];
  private size = 0;
  private readonly source: AsyncIterator<Buffer>;

  constructor(bytes: AsyncIterable<Buffer>) {
    this.source = bytes[Symbol.asyncIterator]();
  }

  /** Returns the next `count` bytes; fewer at the end of the stream. */
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

/** Returns the next file of the archive; null at an empty block, which marks the end of a tar file. */
async function readNextFile(bytes: ByteReader): Promise<ArchiveFile | null> {
  const block = await bytes.readBytes(BLOCK_BYTES);
  if (block.length < BLOCK_BYTES) throw createDamagedFileError("the last bytes are missing");
  const header = new Header(block, 0);
  if (header.nullBlock) return null;
  const { path = "", size = -1, type, cksumValid, linkpath } = header;
  if (!cksumValid) throw createDamagedFileError("the header of a file in the archive cannot be read");
  if (type !== "File" || linkpath || !isValidFileName(path))
    throw createDamagedFileError("the archive contains a link, folder or file that does not belong in a backup");
  if (!Number.isSafeInteger(size) || size < 0 || size > ARCHIVE_FILE_MAX_BYTES)
    throw createDamagedFileError(`the size of ${path} in the archive is not valid (got ${size})`);
  const paddedBytes = Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  const content = await bytes.readBytes(paddedBytes);
  if (content.length < paddedBytes) throw createDamagedFileError("the last bytes are missing");
  return { name: path, content: content.subarray(0, size) };
}

function isEndFile({ name, content }: ArchiveFile, count: number, sha256: string): boolean {
  if (name !== END_FILE_NAME) return false;
  const expected = `${JSON.stringify({ parts: count, sha256 })}\n`;
  if (content.toString() !== expected) throw createDamagedFileError("its content was changed after the backup");
  return true;
}

/**
 * Yields the files of a tar archive. Use them only after the last one was yielded: the digest of all files is verified at the end.
 * @throws ArchiveError if the file is damaged
 */
export async function* readTar(stream: AsyncIterable<Buffer>): AsyncGenerator<ArchiveFile> {
  const bytes = new ByteReader(stream);
  const hash = createHash("sha256");
  try {
    for (let count = 0; ; count += 1) {
      const file = await readNextFile(bytes);
      if (file === null) throw createDamagedFileError("the last bytes are missing");
      if (isEndFile(file, count, hash.copy().digest("hex"))) break;
      addToDigest(hash, file);
      yield file;
    }
    if ((await readNextFile(bytes)) !== null || (await bytes.readBytes(2 * BLOCK_BYTES)).length !== BLOCK_BYTES) {
      throw createDamagedFileError("there are additional or missing bytes at the end of the archive");
    }
  } finally {
    await bytes.close();
  }
}
