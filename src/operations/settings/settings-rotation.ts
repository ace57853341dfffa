/** Replaces the master key SETTINGS_KEY by a new key. The order of the steps ensures that each process always has the necessary keys. */
import type { Db } from "../../data/database.js";
import { createMasterKey } from "../../engine/cipher.js";
import { createKeyRing, readKeyFile, writeKeyFile } from "../../engine/key-ring.js";
import { StartError } from "../../errors.js";
import { DataKeys } from "./data-keys.js";

/** Key of the lock for a rotation (any number). A second rotation would delete the master key that the first rotation has created. */
const ROTATION_LOCK_KEY = 7_203_114_285_022;

function readMasterKeys(path: string): Buffer[] {
  try {
    return readKeyFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new StartError(
      `the key file ${path} does not exist; if the service has the variable SETTINGS_KEY, set it for this command too: the new key, a comma, then the old key`,
    );
  }
}

/**
 * Replaces the master key in the key file by a new key. The file contains both keys until no data key needs the old key. So the command can
 * be repeated after a failure.
 */
async function rotateFile(db: Db, path: string): Promise<number> {
  const newKey = createMasterKey();
  writeKeyFile(path, [newKey, ...readMasterKeys(path)]);
  const count = await new DataKeys({ db, ring: createKeyRing({ keys: null, path }) }).rotate(newKey);
  writeKeyFile(path, [newKey]);
  return count;
}

/**
 * Encrypts the data keys of all apps under a new master key, while other processes use settings. Creates the new key in the file at `path`,
 * or uses the first key in `keys`, which every process must already have. Returns the number of data keys
 * that were encrypted again.
 * @throws StartError if a master key in use is not available; then no data key has changed
 */
export async function rotateSettingsKey(options: {
  db: Db;
  keys: readonly Buffer[] | null;
  path: string;
}): Promise<number> {
  const { db, keys, path } = options;
  const lockConnection = db.createQueryRunner();
  try {
    await lockConnection.query("SELECT pg_advisory_lock($1)", [ROTATION_LOCK_KEY]);
    if (!keys) return await rotateFile(db, path);
    return await new DataKeys({ db, ring: createKeyRing({ keys, path }) }).rotate(keys[0]!);
  } finally {
    await lockConnection.query("SELECT pg_advisory_unlock($1)", [ROTATION_LOCK_KEY]);
    await lockConnection.release();
  }
}
