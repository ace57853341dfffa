/** The master keys of this process, from the environment or from a file that is made when it is missing. Knows not what they wrap. */

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
  /** Where the keys come from, for people. */
  source: string;
  /** The key that wraps what is new. Makes the file with a key if it is missing. */
  current(): Buffer;
  /** The key for which `fits` holds; the file is read again before that is given up, so that a rotation needs no restart. */
  find(fits: (key: Buffer) => boolean): Buffer | null;
}

/** One key a line, in base64, the current one first. */
export function readKeyFile(path: string): Buffer[] {
  const keys = readFileSync(path, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => Buffer.from(line, "base64"));
  if (keys.length === 0 || keys.some((key) => key.length !== KEY_BYTES)) {
    throw new StartError(`${path} must hold keys of ${KEY_BYTES} bytes in base64, one a line`);
  }
  return keys;
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}

/** A file beside `path` that is on the disk whole: what is wrapped under its keys may not outlive them. */
function writeDraft(path: string, keys: readonly Buffer[]): string {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${randomBytes(4).toString("hex")}`;
  const text = `${keys.map((key) => key.toString("base64")).join("\n")}\n`;
  writeFileSync(draft, text, { mode: 0o600, flag: "wx", flush: true });
  return draft;
}

/** Replaces the file as a whole: a reader sees the old keys or the new ones. It stays its owner's when root replaces it. */
export function writeKeyFile(path: string, keys: readonly Buffer[]): void {
  const draft = writeDraft(path, keys);
  const owner = statSync(path, { throwIfNoEntry: false });
  if (owner && process.getuid?.() === 0) chownSync(draft, owner.uid, owner.gid);
  renameSync(draft, path);
  syncFolder(path);
}

function readOrMake(path: string): Buffer[] {
  try {
    return readKeyFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const draft = writeDraft(path, [randomBytes(KEY_BYTES)]);
  // A link refuses to replace: of two processes that find no file, one makes it and the other reads it, whole.
  try {
    linkSync(draft, path);
    syncFolder(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
  return readKeyFile(path);
}

/** `keys` from the environment, or else those of the file at `path`. Keys that were known stay known to this process. */
export function createKeyRing({ keys, path }: { keys: readonly Buffer[] | null; path: string }): KeyRing {
  let known: readonly Buffer[] = keys ?? (existsSync(path) ? readKeyFile(path) : []);
  return {
    source: keys ? "SETTINGS_KEY" : path,
    current() {
      if (known.length === 0) known = readOrMake(path);
      return known[0]!;
    },
    find(fits) {
      const found = known.find(fits);
      if (found || keys || !existsSync(path)) return found ?? null;
      const read = readKeyFile(path);
      known = [...read, ...known.filter((key) => !read.some((other) => other.equals(key)))];
      return known.find(fits) ?? null;
    },
  };
}
