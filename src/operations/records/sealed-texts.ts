/**
 * Encrypts short texts that clients receive and later send back, such as positions in a feed. The encryption keys are
 * derived from the key ring.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { KeyRing } from "../../engine/key-ring.js";

const CIPHER_ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Creates the functions that encrypt and decrypt texts. @param purpose name from which the key is derived, so that a
 * text for one purpose is not accepted for another
 */
export function createSealedTexts({ ring, purpose }: { ring: KeyRing; purpose: string }) {
  const keyOf = (master: Buffer): Buffer => Buffer.from(hkdfSync("sha256", master, "", purpose, 32));

  function unsealWith(key: Buffer, bytes: Buffer, associatedData: string): string {
    const decipher = createDecipheriv(CIPHER_ALGORITHM, key, bytes.subarray(0, IV_BYTES))
      .setAAD(Buffer.from(associatedData))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString();
  }

  return {
    /**
     * Encrypts a text. Each call returns a different result for the same text. Decryption needs the same
     * `associatedData`.
     */
    seal(text: string, associatedData: string): string {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER_ALGORITHM, keyOf(ring.current()), iv).setAAD(Buffer.from(associatedData));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
    },

    /**
     * Decrypts a text. @returns null if the text was not encrypted with a key of the ring and the same `associatedData`
     */
    unseal(sealed: string, associatedData: string): string | null {
      let text: string | null = null;
      ring.find((master) => {
        try {
          text = unsealWith(keyOf(master), Buffer.from(sealed, "base64url"), associatedData);
        } catch {
          // This is not the key that encrypted the text, so the next key is tried.
        }
        return text !== null;
      });
      return text;
    },
  };
}
