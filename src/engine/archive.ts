/**
 * Writes and reads a backup file: a compressed tar file, encrypted if a secret is passed. All data is streamed, so that only a few
 * megabytes are in memory.
 */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline as pipe, Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import {
  type BackupSecret,
  decryptStream,
  ENCRYPTED_FILE_MAGIC,
  ENCRYPTION_HEADER_BYTES,
  encryptStream,
} from "./archive/encryption.js";
import { ArchiveError, createDamagedFileError } from "./archive/failure.js";
import { type ArchiveFile, readTar, writeTar } from "./archive/tar.js";

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
/** Compression level of gzip. This level takes half the time of the default level; files are a few percent larger. */
const COMPRESSION_LEVEL = 4;
const READ_CHUNK_BYTES = 256 * 1024;

async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Writes the file `path`, which only its owner can read. Encrypts the file unless `secret` is null. After an error, no incomplete file
 * remains.
 * @throws ArchiveError if the file exists or cannot be created; errors that `files` throws; other errors of the file system
 */
export async function writeArchive(
  path: string,
  files: AsyncIterable<ArchiveFile>,
  secret: BackupSecret | null,
): Promise<void> {
  const temporaryPath = `${path}.${randomBytes(4).toString("hex")}`;
  const encrypt = (source: AsyncIterable<Buffer>) => (secret ? encryptStream(source, secret) : source);
  try {
    // Opens the file now. A stream would open it later, perhaps even after the clean-up of a failed write.
    const file = await open(temporaryPath, "wx", 0o600);
    const out = file.createWriteStream({ flush: true });
    await pipeline(Readable.from(writeTar(files)), createGzip({ level: COMPRESSION_LEVEL }), encrypt, out);
    // Unlike a rename, a link does not replace an existing file.
    await link(temporaryPath, path);
    await syncFolder(path);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw new ArchiveError(`${path} exists already; choose another file name`);
    if (code && (syscall === "open" || syscall === "link"))
      throw new ArchiveError(`${path} cannot be written (${code})`);
    throw error;
  } finally {
    await rm(temporaryPath, { force: true });
  }
}

async function readFirstBytes(path: string): Promise<Buffer> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    throw new ArchiveError(`${path} cannot be read (${error.code})`);
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(ENCRYPTION_HEADER_BYTES), 0, ENCRYPTION_HEADER_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw new ArchiveError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  } finally {
    await file.close();
  }
}

async function readCompressedBytes(path: string, secret: BackupSecret | null): Promise<AsyncIterable<Buffer>> {
  const head = await readFirstBytes(path);
  const from = (start: number) => createReadStream(path, { start, highWaterMark: READ_CHUNK_BYTES });
  if (head.subarray(0, ENCRYPTED_FILE_MAGIC.length).equals(ENCRYPTED_FILE_MAGIC))
    return decryptStream(head, from(ENCRYPTION_HEADER_BYTES), secret);
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC))
    throw new ArchiveError("the file is not a backup of Svc App Actions");
  if (secret !== null) throw new ArchiveError("the file is not encrypted; do not pass a passphrase or a key file");
  return from(0);
}

/** Yields the bytes of a decompressing stream. @throws ArchiveError if zlib cannot decompress the stream, because the file is damaged */
async function* decompressBytes(bytes: Transform): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    if (/^Z_/.test((error as NodeJS.ErrnoException).code ?? ""))
      throw createDamagedFileError("the compressed data cannot be unpacked");
    throw error;
  }
}

/**
 * Yields the files in the backup. Use them only after the last one was yielded, because their digest is verified at the end.
 * @throws ArchiveError if the file cannot be read, is no backup or is damaged, or if `secret` does not match its encryption
 */
export async function* readArchive(path: string, secret: BackupSecret | null): AsyncGenerator<ArchiveFile> {
  const source = Readable.from(await readCompressedBytes(path, secret), { objectMode: false });
  // `pipe` forwards errors of `source` to the last stream, so the callback can ignore them.
  const plain = pipe(source, createGunzip(), () => undefined);
  yield* readTar(decompressBytes(plain));
}
