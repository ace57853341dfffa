/** Encrypts short texts that clients receive and send back, such as a position in a feed. The keys are derived from the service's keys. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { KeyRing } from "../../engine/key-ring.js";

const CIPHER_ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

function unsealWith(key: Buffer, bytes: Buffer, associatedData: string): string {
  const decipher = createDecipheriv(CIPHER_ALGORITHM, key, bytes.subarray(0, IV_BYTES))
    .setAAD(Buffer.from(associatedData))
    .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString();
}

interface TextCipherOptions {
  ring: KeyRing;
  /** The encryption key is derived from this label and a key of the service. So a text with one purpose cannot be decrypted for another. */
  purpose: string;
}

export class TextCipher {
  constructor(private readonly options: TextCipherOptions) {}

  private deriveKey(master: Buffer): Buffer {
    return Buffer.from(hkdfSync("sha256", master, "", this.options.purpose, 32));
  }

  /**
   * Encrypts a text, with a different result at each call. Decryption needs the same `associatedData`, which the result does not contain.
   */
  seal(text: string, associatedData: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER_ALGORITHM, this.deriveKey(this.options.ring.getCurrentKey()), iv).setAAD(
      Buffer.from(associatedData),
    );
    const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
  }

  /** Decrypts a text; null if it was not encrypted with one of the service's keys and the same `associatedData`. */
  unseal(sealed: string, associatedData: string): string | null {
    let text: string | null = null;
    this.options.ring.findKey((master) => {
      try {
        text = unsealWith(this.deriveKey(master), Buffer.from(sealed, "base64url"), associatedData);
      } catch {
        // Another key may have encrypted the text.
      }
      return text !== null;
    });
    return text;
  }
}
