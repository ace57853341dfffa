/** Reads a backup's encryption options from the command line, and the passphrase or key from the named file. */
import { readFileSync } from "node:fs";
import type { BackupSecret } from "../engine/archive/encryption.js";
import { StartError } from "../errors.js";

/** Minimum length of a passphrase. Attackers could guess a shorter one, although the derivation of the key makes each guess slow. */
const PASSPHRASE_MIN_CHARACTERS = 12;
const KEY_BYTES = 32;

export const BACKUP_SECRET_OPTIONS = {
  "passphrase-file": { type: "string" },
  "key-file": { type: "string" },
} as const;

export interface BackupSecretOptionValues {
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
 * Reads the secret that encrypts a backup. Returns null if the command line has no option for it.
 * @throws StartError if the command line names two files, or if the file's content is invalid
 */
export function readBackupSecret(values: BackupSecretOptionValues): BackupSecret | null {
  const { "passphrase-file": passphraseFile, "key-file": keyFile } = values;
  if (passphraseFile !== undefined && keyFile !== undefined) {
    throw new StartError("Set --passphrase-file or --key-file, not both.");
  }
  if (passphraseFile !== undefined) {
    const text = readFileText(passphraseFile);
    if (text.length >= PASSPHRASE_MIN_CHARACTERS && !/[\r\n]/.test(text)) return { kind: "passphrase", text };
    throw new StartError(
      `${passphraseFile} must contain a passphrase of ${PASSPHRASE_MIN_CHARACTERS} characters or more, in one line`,
    );
  }
  if (keyFile === undefined) return null;
  const text = readFileText(keyFile).trim();
  const bytes = Buffer.from(text, "base64");
  if (bytes.length === KEY_BYTES && bytes.toString("base64") === text) return { kind: "key", bytes };
  throw new StartError(
    `${keyFile} must contain ${KEY_BYTES} bytes in base64; create them with: openssl rand -base64 ${KEY_BYTES}`,
  );
}
