/** The rotation of SETTINGS_KEY, in the order that leaves no moment at which a process lacks a key that it needs. */
import type { DataSource } from "typeorm";
import { newMasterKey } from "../../engine/cipher.js";
import { createKeyRing, readKeyFile, writeKeyFile } from "../../engine/key-ring.js";
import { StartError } from "../../errors.js";
import { createDataKeys } from "./data-keys.js";

/** Any number that no other program on the database takes: of two rotations one waits, or it would drop the other's key. */
const ROTATION_LOCK = 7_203_114_285_022;

function keysOf(path: string): Buffer[] {
  try {
    return readKeyFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new StartError(
      `${path} does not exist: give SETTINGS_KEY as the service has it, the new key before the old ones`,
    );
  }
}

/**
 * A process that meets what it cannot unwrap reads the file again. So the new key lies in it before anything is wrapped under it,
 * and the old one until nothing is: at a failure in between both stay there, and the command may be repeated.
 */
async function rotateFile(db: DataSource, path: string): Promise<number> {
  const next = newMasterKey();
  writeKeyFile(path, [next, ...keysOf(path)]);
  const count = await createDataKeys({ db, ring: createKeyRing({ keys: null, path }) }).rotate(next);
  writeKeyFile(path, [next]);
  return count;
}

/**
 * Wraps the data keys of all apps under a new key in the file at `path`; or under the first of `keys`, which every process has been
 * given before. Readers and writers go on meanwhile. Answers how many apps had data keys to wrap.
 * @throws StartError when a key that is in use is at hand nowhere: then nothing has changed
 */
export async function rotateSettingsKey(options: {
  db: DataSource;
  keys: readonly Buffer[] | null;
  path: string;
}): Promise<number> {
  const { db, keys, path } = options;
  const guard = db.createQueryRunner();
  try {
    await guard.query("SELECT pg_advisory_lock($1)", [ROTATION_LOCK]);
    if (!keys) return await rotateFile(db, path);
    return await createDataKeys({ db, ring: createKeyRing({ keys, path }) }).rotate(keys[0]!);
  } finally {
    await guard.query("SELECT pg_advisory_unlock($1)", [ROTATION_LOCK]);
    await guard.release();
  }
}
