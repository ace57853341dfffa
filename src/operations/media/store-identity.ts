/**
 * Checks that all API processes of one database use the same media store. Read this file if a process does not start because of its media
 * store.
 */
import type { Logger } from "pino";
import { type Db, rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import { StartError } from "../../errors.js";

const RECORD_STORE_IDENTITY =
  "UPDATE media_store SET identity = $1 WHERE identity IS NULL OR identity = $2 RETURNING identity";

/** Selects whether an API process other than $1 is running, and whether the database has media files. */
const SELECT_STORE_USE = `
  SELECT EXISTS (SELECT FROM instance WHERE id <> $1 AND 'api' = ANY (roles) AND lease_until >= now()) AS "isServed",
         EXISTS (SELECT FROM media_file) AS "hasFiles"`;

const isLocalStore = (identity: string): boolean => !identity.startsWith("s3:");

const WRONG_STORE_REMEDY =
  "give every process the same DATA_DIR/media on a shared volume, " +
  "or the same bucket in MEDIA_URL (docs/operate/several-machines.md)";

/** Returns the ID of the media store that contains the files of this database; null if the database names none yet. */
export async function readMediaStoreId(db: Db): Promise<string | null> {
  const [storeRow] = await rows<{ identity: string | null }>(db, "SELECT identity FROM media_store");
  return storeRow!.identity;
}

/**
 * Stores the ID of this process's media store in the database, as the ID of the store that contains the database's files.
 * @param storeName name of the store in error messages, such as "the folder /data/media of DATA_DIR"
 * @throws StartError if the database names another store that must not be replaced
 */
export async function claimMediaStore(options: {
  db: Db;
  store: BlobStore;
  storeName: string;
  processId: string;
  log: Logger;
}): Promise<void> {
  const { db, store, storeName, processId, log } = options;
  const identity = await store.readStoreId();
  const recordedIdentity = await readMediaStoreId(db);
  if (recordedIdentity === identity) return;
  const [storeUse] = await rows<{ isServed: boolean; hasFiles: boolean }>(db, SELECT_STORE_USE, [processId]);
  const { isServed, hasFiles } = storeUse!;
  if (recordedIdentity !== null && isServed) {
    throw new StartError(
      `${storeName} is not the media store that other running processes of this database use: ${WRONG_STORE_REMEDY}`,
    );
  }
  if (recordedIdentity !== null && hasFiles && isLocalStore(recordedIdentity) && isLocalStore(identity)) {
    throw new StartError(
      `${storeName} is not the media store that contains the files of this database: ${WRONG_STORE_REMEDY}. ` +
        "If that store is lost, run UPDATE media_store SET identity = NULL in the database; its files stay missing",
    );
  }
  // If no row was updated, another process has just stored the ID of its media store. Then this function starts again.
  if ((await rows(db, RECORD_STORE_IDENTITY, [identity, recordedIdentity])).length === 0)
    return claimMediaStore(options);
  if (recordedIdentity !== null) log.warn({ store: storeName }, "the media store of this database was changed");
}
