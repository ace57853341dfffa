/** Master keys of this process, from an environment variable or a key file, which is created if it is missing. */

import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { StartError } from "../errors.js";

const KEY_BYTES = 32;

export interface KeyRing {
  /** Origin of the keys for messages: the name of the environment variable, or the path of the key file. */
  source: string;
  /** Returns the master key that encrypts new data keys. Creates the key file if it is missing. */
  getCurrentKey(): Buffer;
  /**
   * Returns the first key that `fits` accepts; null if there is none. If no known key fits, reads the key file again, so that a rotation
   * needs no restart.
   */
  findKey(fits: (key: Buffer) => boolean): Buffer | null;
}

/** Reads the key file: one key per line in base64, the current key first. */
export function readKeyFile(path: string): Buffer[] {
  const keys = readFileSync(path, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => Buffer.from(line, "base64"));
  if (keys.length === 0 || keys.some((key) => key.length !== KEY_BYTES)) {
    throw new StartError(`${path} must contain keys of ${KEY_BYTES} bytes in base64, one key per line`);
  }
  return keys;
}

/** Flushes the folder of the file `path` to disk. */
function syncFolder(path: string): void {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}

/** Writes a temporary file beside `path`, and returns its path. Without the flush to disk, a crash could lose a key that is in use. */
function writeTemporaryKeyFile(path: string, keys: readonly Buffer[]): string {
  mkdirSync(dirname(path), { recursive: true });
  const temporaryPath = `${path}.${randomBytes(4).toString("hex")}`;
  const text = `${keys.map((key) => key.toString("base64")).join("\n")}\n`;
  writeFileSync(temporaryPath, text, { mode: 0o600, flag: "wx", flush: true });
  return temporaryPath;
}

/** Replaces the key file atomically: a reader gets either the old or the new keys. As root, keeps the owner of the file. */
export function writeKeyFile(path: string, keys: readonly Buffer[]): void {
  const temporaryPath = writeTemporaryKeyFile(path, keys);
  const owner = statSync(path, { throwIfNoEntry: false });
  if (owner && process.getuid?.() === 0) chownSync(temporaryPath, owner.uid, owner.gid);
  renameSync(temporaryPath, path);
  syncFolder(path);
}

function readOrCreateKeys(path: string): Buffer[] {
  try {
    return readKeyFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const temporaryPath = writeTemporaryKeyFile(path, [randomBytes(KEY_BYTES)]);
  // link() does not replace an existing file. If two processes start without a key file, one creates it, and the other reads it.
  try {
    linkSync(temporaryPath, path);
    syncFolder(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(temporaryPath);
  }
  return readKeyFile(path);
}

/**
 * Uses `keys` (from the environment) or, if that is null, the file at `path`. A key that is removed from the file stays valid in this
 * process until it restarts.
 */
export function createKeyRing({ keys, path }: { keys: readonly Buffer[] | null; path: string }): KeyRing {
  let knownKeys: readonly Buffer[] = keys ?? (existsSync(path) ? readKeyFile(path) : []);
  return {
    source: keys ? "SETTINGS_KEY" : path,
    getCurrentKey() {
      if (knownKeys.length === 0) knownKeys = readOrCreateKeys(path);
      return knownKeys[0]!;
    },
    findKey(fits) {
      const knownKey = knownKeys.find(fits);
      if (knownKey || keys || !existsSync(path)) return knownKey ?? null;
      const fileKeys = readKeyFile(path);
      knownKeys = [...fileKeys, ...knownKeys.filter((key) => !fileKeys.some((other) => other.equals(key)))];
      return knownKeys.find(fits) ?? null;
    },
  };
}
