/** Encrypts stored values with AES-256-GCM. A data key encrypts values, and a master key encrypts data keys. */
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

function encryptBytes(key: Buffer | KeyObject, plain: Buffer, associatedData: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(associatedData));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]);
}

function decryptBytes(key: Buffer | KeyObject, sealed: Buffer, associatedData: string): Buffer {
  const iv = sealed.subarray(0, IV_BYTES);
  const tag = sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(associatedData)).setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}

export const createMasterKey = (): Buffer => randomBytes(32);

/** Creates a data key. It is a key object, because converting a Buffer for each value would take longer than the decryption. */
export const createDataKey = (): KeyObject => createSecretKey(randomBytes(32));

/** Returns a text that identifies a master key without revealing it. */
export function computeKeyFingerprint(masterKey: Buffer): string {
  return createHash("sha256")
    .update("svc settings key")
    .update(masterKey)
    .digest("hex")
    .slice(0, 2 * FINGERPRINT_BYTES);
}

/** Encrypts `text`. Decryption requires the same key and the same `associatedData`. */
export const encryptText = (dataKey: KeyObject, text: string, associatedData: string): Buffer =>
  encryptBytes(dataKey, Buffer.from(text), associatedData);

/** Decrypts a text. @throws Error if the key or `associatedData` is not that of the encryption, or if the bytes were changed */
export const decryptText = (dataKey: KeyObject, sealed: Buffer, associatedData: string): string =>
  decryptBytes(dataKey, sealed, associatedData).toString();

/** Encrypts a data key with a master key. The result contains the fingerprint of the master key. */
export const wrapDataKey = (masterKey: Buffer, dataKey: KeyObject, associatedData: string): Buffer =>
  Buffer.concat([
    Buffer.from(computeKeyFingerprint(masterKey), "hex"),
    encryptBytes(masterKey, dataKey.export(), associatedData),
  ]);

export const readMasterKeyFingerprint = (wrapped: Buffer): string =>
  wrapped.subarray(0, FINGERPRINT_BYTES).toString("hex");

export const unwrapDataKey = (masterKey: Buffer, wrapped: Buffer, associatedData: string): KeyObject =>
  createSecretKey(decryptBytes(masterKey, wrapped.subarray(FINGERPRINT_BYTES), associatedData));
