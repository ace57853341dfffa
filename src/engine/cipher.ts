/** AES-256-GCM for values at rest: seals under a data key, wraps data keys under a master key. Knows no settings and no storage. */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";

const IV_BYTES = 12;
const TAG_BYTES = 16;
const FINGERPRINT_BYTES = 8;

/** Layout of what is sealed: initialization vector, authentication tag, ciphertext. */
function encrypt(key: Buffer | KeyObject, plain: Buffer, associated: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(associated));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]);
}

function decrypt(key: Buffer | KeyObject, sealed: Buffer, associated: string): Buffer {
  const iv = sealed.subarray(0, IV_BYTES);
  const tag = sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(associated)).setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}

export const newMasterKey = (): Buffer => randomBytes(32);

/** Data keys are key objects: a Buffer would be made into one for every value, which costs more than to open the value. */
export const newDataKey = (): KeyObject => createSecretKey(randomBytes(32));

/** Names a master key without giving it away. */
export function fingerprint(masterKey: Buffer): string {
  return createHash("sha256")
    .update("svc settings key")
    .update(masterKey)
    .digest("hex")
    .slice(0, 2 * FINGERPRINT_BYTES);
}

/** Seals `text`; opening it needs the same key and the same `associated` text. */
export const seal = (dataKey: KeyObject, text: string, associated: string): Buffer =>
  encrypt(dataKey, Buffer.from(text), associated);

/** @throws when the key or `associated` is not the one that sealed it, or the bytes were changed */
export const open = (dataKey: KeyObject, sealed: Buffer, associated: string): string =>
  decrypt(dataKey, sealed, associated).toString();

/** A data key under a master key, which the result names by its fingerprint. */
export const wrap = (masterKey: Buffer, dataKey: KeyObject, associated: string): Buffer =>
  Buffer.concat([Buffer.from(fingerprint(masterKey), "hex"), encrypt(masterKey, dataKey.export(), associated)]);

export const wrappedUnder = (wrapped: Buffer): string => wrapped.subarray(0, FINGERPRINT_BYTES).toString("hex");

export const unwrap = (masterKey: Buffer, wrapped: Buffer, associated: string): KeyObject =>
  createSecretKey(decrypt(masterKey, wrapped.subarray(FINGERPRINT_BYTES), associated));
