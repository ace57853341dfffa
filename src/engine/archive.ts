/**
 * Writes and reads one file of many parts in order: packed, compressed, and encrypted if a secret is passed. The file exists completely or
 * not at all, and is read to the end or refused. Data is streamed: a few megabytes are in memory, whatever the size of the file.
 */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline as pipe, Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { ArchiveError, damagedArchive } from "./archive/failure.js";
import { HEADER_BYTES, SEAL_MAGIC, type Secret, sealStream, unsealStream } from "./archive/sealing.js";
import { readTape, type TapePart, writeTape } from "./archive/tape.js";

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
/** Compression level. It takes half the time of zlib's default for a few percent more bytes. */
const COMPRESSION_LEVEL = 4;
const READ_BYTES = 256 * 1024;

async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Writes the file at `path`, readable only by its owner; without encryption if `secret` is null.
 * @throws ArchiveError if the file exists, and errors of `parts`: then no file is left
 */
export async function writeArchive(path: string, parts: AsyncIterable<TapePart>, secret: Secret | null): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString("hex")}`;
  const packed = (source: AsyncIterable<Buffer>) => (secret ? sealStream(source, secret) : source);
  try {
    // The file is opened first, because a stream that opens the file itself may do so after the file was removed.
    const file = await open(draft, "wx", 0o600);
    const out = file.createWriteStream({ flush: true });
    await pipeline(Readable.from(writeTape(parts)), createGzip({ level: COMPRESSION_LEVEL }), packed, out);
    // Unlike a rename, a link does not replace an existing file.
    await link(draft, path);
    await syncFolder(path);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw new ArchiveError(`${path} exists already: nothing is overwritten`);
    if (code && (syscall === "open" || syscall === "link"))
      throw new ArchiveError(`${path} cannot be written (${code})`);
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function readFirstBytes(path: string): Promise<Buffer> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    throw new ArchiveError(`${path} cannot be read (${error.code})`);
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw new ArchiveError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  } finally {
    await file.close();
  }
}

/** Returns the compressed bytes. */
async function readPackedBytes(path: string, secret: Secret | null): Promise<AsyncIterable<Buffer>> {
  const head = await readFirstBytes(path);
  const from = (start: number) => createReadStream(path, { start, highWaterMark: READ_BYTES });
  if (head.subarray(0, SEAL_MAGIC.length).equals(SEAL_MAGIC)) return unsealStream(head, from(HEADER_BYTES), secret);
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC))
    throw new ArchiveError("the file is not a backup of this service");
  if (secret !== null) throw new ArchiveError("the file is not encrypted: give neither a passphrase nor a key file");
  return from(0);
}

/** Replaces zlib's errors by an ArchiveError that an operator understands. */
async function* unpackBytes(bytes: Transform): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    if (/^Z_/.test((error as NodeJS.ErrnoException).code ?? "")) throw damagedArchive("it cannot be unpacked");
    throw error;
  }
}

/**
 * Yields the parts of the file in order. They can be trusted only when all have been yielded.
 * @throws ArchiveError that says what is wrong with the file or the secret
 */
export async function* readArchive(path: string, secret: Secret | null): AsyncGenerator<TapePart> {
  const source = Readable.from(await readPackedBytes(path, secret), { objectMode: false });
  // Errors of this stream arrive through the last stream.
  const plain = pipe(source, createGunzip(), () => undefined);
  yield* readTape(unpackBytes(plain));
}
