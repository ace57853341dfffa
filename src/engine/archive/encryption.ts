/**
 * Encrypts a stream of bytes with AES-256-GCM in chunks. The nonce of a chunk contains its position, and a mark for the last chunk. So a
 * file whose chunks were changed, removed, reordered or added cannot be decrypted.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { promisify } from "node:util";
import { ArchiveError, createDamagedFileError } from "./failure.js";

export type BackupSecret = { kind: "passphrase"; text: string } | { kind: "key"; bytes: Buffer };

/** First bytes of every encrypted file. The digit at their end is the version of the format. */
export const ENCRYPTED_FILE_MAGIC = Buffer.from("svc-backup-seal1");
const SALT_BYTES = 32;
const HEADER_CHECKSUM_BYTES = 16;
const SECRET_KIND_BYTES = 1;
export const ENCRYPTION_HEADER_BYTES =
  ENCRYPTED_FILE_MAGIC.length + SECRET_KIND_BYTES + SALT_BYTES + HEADER_CHECKSUM_BYTES;

const SECRET_KIND_CODES = { passphrase: 1, key: 2 } as const;
const SECRET_DESCRIPTIONS = { passphrase: "a passphrase", key: "a key file" } as const;

const CHUNK_BYTES = 64 * 1024;
const TAG_BYTES = 16;
const ENCRYPTED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES;

/**
 * Parameters of scrypt, with which each guess of a passphrase needs 128 MB of memory. They are not read from the file, because a malicious
 * file could set higher values.
 */
const SCRYPT_PARAMETERS = { N: 2 ** 17, r: 8, p: 1, maxmem: 160 * 2 ** 20 };

interface DerivedKeys {
  chunkKey: Buffer;
  headerKey: Buffer;
}

async function deriveKeys(secret: BackupSecret, salt: Buffer): Promise<DerivedKeys> {
  const deriveWithScrypt = promisify<string, Buffer, number, typeof SCRYPT_PARAMETERS, Buffer>(scrypt);
  const keyBytes =
    secret.kind === "passphrase"
      ? await deriveWithScrypt(secret.text.normalize("NFKC"), salt, 64, SCRYPT_PARAMETERS)
      : Buffer.from(hkdfSync("sha256", secret.bytes, salt, "svc-app-actions backup", 64));
  return { chunkKey: keyBytes.subarray(0, 32), headerKey: keyBytes.subarray(32) };
}

/** Returns the nonce of a chunk. It is unique for its key, because each file has its own key, and each chunk of a file its own number. */
function createChunkNonce(number: number, last: boolean): Buffer {
  const iv = Buffer.alloc(12);
  iv.writeUInt32BE(number, 7);
  iv[11] = last ? 1 : 0;
  return iv;
}

const computeHeaderChecksum = ({ headerKey }: DerivedKeys, head: Buffer): Buffer =>
  createHmac("sha256", headerKey).update(head).digest().subarray(0, HEADER_CHECKSUM_BYTES);

/** Splits a stream into chunks of `size` bytes. The last chunk may be shorter or empty, and has `last: true`. */
async function* splitIntoChunks(
  bytes: AsyncIterable<Buffer>,
  size: number,
): AsyncGenerator<{ chunk: Buffer; last: boolean }> {
  let pendingParts: Buffer[] = [];
  let pendingBytes = 0;
  for await (const part of bytes) {
    pendingParts.push(part);
    pendingBytes += part.length;
    if (pendingBytes <= size) continue;
    const all = Buffer.concat(pendingParts);
    let at = 0;
    // Keeps at least one byte for the last chunk, because a chunk with `last: false` must be followed by another one.
    for (; all.length - at > size; at += size) yield { chunk: all.subarray(at, at + size), last: false };
    pendingParts = [all.subarray(at)];
    pendingBytes = all.length - at;
  }
  yield { chunk: Buffer.concat(pendingParts), last: true };
}

export async function* encryptStream(plain: AsyncIterable<Buffer>, secret: BackupSecret): AsyncGenerator<Buffer> {
  const head = Buffer.concat([
    ENCRYPTED_FILE_MAGIC,
    Buffer.from([SECRET_KIND_CODES[secret.kind]]),
    randomBytes(SALT_BYTES),
  ]);
  const keys = await deriveKeys(secret, head.subarray(ENCRYPTED_FILE_MAGIC.length + SECRET_KIND_BYTES));
  yield Buffer.concat([head, computeHeaderChecksum(keys, head)]);
  let number = 0;
  for await (const { chunk, last } of splitIntoChunks(plain, CHUNK_BYTES)) {
    const cipher = createCipheriv("aes-256-gcm", keys.chunkKey, createChunkNonce(number, last)).setAAD(head);
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()]);
    number += 1;
  }
}

async function verifyHeader(header: Buffer, secret: BackupSecret | null): Promise<{ keys: DerivedKeys; head: Buffer }> {
  const head = header.subarray(0, ENCRYPTION_HEADER_BYTES - HEADER_CHECKSUM_BYTES);
  const kind = (["passphrase", "key"] as const).find(
    (kindName) => SECRET_KIND_CODES[kindName] === head[ENCRYPTED_FILE_MAGIC.length],
  );
  if (header.length < ENCRYPTION_HEADER_BYTES || !kind)
    throw createDamagedFileError("the header is incomplete or was changed");
  if (secret?.kind !== kind)
    throw new ArchiveError(`the backup file is encrypted; to decrypt the file, pass ${SECRET_DESCRIPTIONS[kind]}`);
  const keys = await deriveKeys(secret, head.subarray(ENCRYPTED_FILE_MAGIC.length + SECRET_KIND_BYTES));
  if (
    !timingSafeEqual(
      computeHeaderChecksum(keys, head),
      header.subarray(ENCRYPTION_HEADER_BYTES - HEADER_CHECKSUM_BYTES),
    )
  ) {
    const secretName = kind === "passphrase" ? "passphrase" : "key";
    throw new ArchiveError(
      `the ${secretName} is wrong: the file was encrypted with another ${secretName}, or its header was changed`,
    );
  }
  return { keys, head };
}

/**
 * Yields the decrypted bytes of a file. Verifies each chunk before its bytes are yielded.
 * @param encryptedBytes bytes of the file after the header
 * @throws ArchiveError if the secret is missing or wrong, or the file is damaged or truncated
 */
export async function* decryptStream(
  header: Buffer,
  encryptedBytes: AsyncIterable<Buffer>,
  secret: BackupSecret | null,
): AsyncGenerator<Buffer> {
  const { keys, head } = await verifyHeader(header, secret);
  let number = 0;
  for await (const { chunk, last } of splitIntoChunks(encryptedBytes, ENCRYPTED_CHUNK_BYTES)) {
    if (chunk.length < TAG_BYTES) throw createDamagedFileError("the last bytes are missing");
    const body = chunk.subarray(0, -TAG_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", keys.chunkKey, createChunkNonce(number, last)).setAAD(head);
    decipher.setAuthTag(chunk.subarray(-TAG_BYTES));
    let plain: Buffer;
    try {
      plain = Buffer.concat([decipher.update(body), decipher.final()]);
    } catch {
      throw createDamagedFileError(
        last
          ? "the end of the file is missing or was changed"
          : `the content was changed near byte ${number * ENCRYPTED_CHUNK_BYTES}`,
      );
    }
    yield plain;
    number += 1;
  }
}
