/** Encrypts short texts that clients receive and send back. Its keys are derived from the key ring and differ from those of settings. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { KeyRing } from "../../engine/key-ring.js";

const CIPHER_ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** @param purpose name from which the key is derived, so that modules cannot decrypt each other's texts */
export function createSealedTexts({ ring, purpose }: { ring: KeyRing; purpose: string }) {
  const keyOf = (master: Buffer): Buffer => Buffer.from(hkdfSync("sha256", master, "", purpose, 32));

  function unsealWith(key: Buffer, bytes: Buffer, associatedData: string): string {
    const decipher = createDecipheriv(CIPHER_ALGORITHM, key, bytes.subarray(0, IV_BYTES))
      .setAAD(Buffer.from(associatedData))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString();
  }

  return {
    /** Encrypts a text. Each call returns a different text. Decryption needs the same `associatedData`. */
    seal(text: string, associatedData: string): string {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER_ALGORITHM, keyOf(ring.current()), iv).setAAD(Buffer.from(associatedData));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
    },

    /** Decrypts a text. @returns null if it was not encrypted with one of the keys and the same `associatedData` */
    unseal(sealed: string, associatedData: string): string | null {
      let text: string | null = null;
      ring.find((master) => {
        try {
          text = unsealWith(keyOf(master), Buffer.from(sealed, "base64url"), associatedData);
        } catch {
          // Another key encrypted the text, or the text is not encrypted.
        }
        return text !== null;
      });
      return text;
    },
  };
}
