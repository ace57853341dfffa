/** Reads the encryption options of a backup from the command line, and the file with the passphrase or key. */
import { readFileSync } from "node:fs";
import type { Secret } from "../engine/archive/sealing.js";
import { StartError } from "../errors.js";

/** Minimum length of a passphrase. A guess costs a third of a second, but shorter passphrases could still be guessed. */
const PASSPHRASE_MIN = 12;
const KEY_BYTES = 32;

export const SECRET_OPTIONS = {
  "passphrase-file": { type: "string" },
  "key-file": { type: "string" },
} as const;

export interface SecretValues {
  "passphrase-file"?: string;
  "key-file"?: string;
}

function readFileText(path: string): string {
  try {
    return readFileSync(path, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new StartError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/**
 * Reads the secret. Returns null if the command line names none.
 * @throws StartError if it names two, or if the file's content is invalid
 */
export function readSecret(values: SecretValues): Secret | null {
  const { "passphrase-file": passphraseFile, "key-file": keyFile } = values;
  if (passphraseFile !== undefined && keyFile !== undefined) {
    throw new StartError("Set --passphrase-file or --key-file, not both.");
  }
  if (passphraseFile !== undefined) {
    const text = readFileText(passphraseFile);
    if (text.length >= PASSPHRASE_MIN && !/[\r\n]/.test(text)) return { kind: "passphrase", text };
    throw new StartError(
      `${passphraseFile} must contain a passphrase of ${PASSPHRASE_MIN} characters or more, in one line`,
    );
  }
  if (keyFile === undefined) return null;
  const text = readFileText(keyFile).trim();
  const bytes = Buffer.from(text, "base64");
  if (bytes.length === KEY_BYTES && bytes.toString("base64") === text) return { kind: "key", bytes };
  throw new StartError(
    `${keyFile} must hold ${KEY_BYTES} bytes in base64, as openssl rand -base64 ${KEY_BYTES} prints them`,
  );
}
