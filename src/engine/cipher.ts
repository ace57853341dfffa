/** AES-256-GCM for values at rest: seals under a data key, wraps data keys under a master key. Knows no settings and no storage. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const IV_BYTES = 12;
const TAG_BYTES = 16;
const FINGERPRINT_BYTES = 8;

/** Layout of what is sealed: initialization vector, authentication tag, ciphertext. */
function encrypt(key: Buffer, plain: Buffer, associated: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(associated));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]);
}

function decrypt(key: Buffer, sealed: Buffer, associated: string): Buffer {
  const iv = sealed.subarray(0, IV_BYTES);
  const tag = sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(associated)).setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}

export const newKey = (): Buffer => randomBytes(32);

/** Names a master key without giving it away. */
export function fingerprint(masterKey: Buffer): string {
  return createHash("sha256")
    .update("svc settings key")
    .update(masterKey)
    .digest("hex")
    .slice(0, 2 * FINGERPRINT_BYTES);
}

/** Seals `text`; opening it needs the same key and the same `associated` text. */
export const seal = (dataKey: Buffer, text: string, associated: string): Buffer =>
  encrypt(dataKey, Buffer.from(text), associated);

/** @throws when the key or `associated` is not the one that sealed it, or the bytes were changed */
export const open = (dataKey: Buffer, sealed: Buffer, associated: string): string =>
  decrypt(dataKey, sealed, associated).toString();

/** A data key under a master key, which the result names by its fingerprint. */
export const wrap = (masterKey: Buffer, dataKey: Buffer, associated: string): Buffer =>
  Buffer.concat([Buffer.from(fingerprint(masterKey), "hex"), encrypt(masterKey, dataKey, associated)]);

export const wrappedUnder = (wrapped: Buffer): string => wrapped.subarray(0, FINGERPRINT_BYTES).toString("hex");

export const unwrap = (masterKey: Buffer, wrapped: Buffer, associated: string): Buffer =>
  decrypt(masterKey, wrapped.subarray(FINGERPRINT_BYTES), associated);
