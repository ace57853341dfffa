/**
 * Checks that all API processes with the same database use the same media store. Read this file when a process does not
 * start because of its media store.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import { StartError } from "../../errors.js";

const CLAIM_STORE = "UPDATE media_store SET identity = $1 WHERE identity IS NULL OR identity = $2 RETURNING identity";

/** Selects whether other API processes are running, and whether any files exist. $1 is this process. */
const SELECT_STORE_USE = `
  SELECT EXISTS (SELECT FROM instance WHERE id <> $1 AND 'api' = ANY (roles) AND lease_until >= now()) AS "isServed",
         EXISTS (SELECT FROM media_file) AS "hasFiles"`;

const isLocal = (identity: string): boolean => !identity.startsWith("s3:");

const STORE_REMEDY =
  "give every process the same DATA_DIR/media on a shared volume, " +
  "or the same bucket in MEDIA_URL (docs/operate/several-machines.md)";

/**
 * Returns the identity of the media store that contains the database's files; null before the first API process has
 * started.
 */
export async function recordedIdentity(db: DataSource): Promise<string | null> {
  const [storeRow] = await rows<{ identity: string | null }>(db, "SELECT identity FROM media_store");
  return storeRow!.identity;
}

/**
 * Records in the database that this process's media store contains its files.
 * @param where description of the store for error messages, such as "the folder /data/media of DATA_DIR"
 * @throws StartError if another store is recorded and must not be replaced
 */
export async function claimStore(options: {
  db: DataSource;
  store: BlobStore;
  storeName: string;
  instance: string;
  log: Logger;
}): Promise<void> {
  const { db, store, storeName: where, instance, log } = options;
  const identity = await store.identity();
  const recorded = await recordedIdentity(db);
  if (recorded === identity) return;
  const [use] = await rows<{ isServed: boolean; hasFiles: boolean }>(db, SELECT_STORE_USE, [instance]);
  const { isServed, hasFiles } = use!;
  if (recorded !== null && isServed) {
    throw new StartError(
      `${where} is not the media store that other running processes of this database use: ${STORE_REMEDY}`,
    );
  }
  if (recorded !== null && hasFiles && isLocal(recorded) && isLocal(identity)) {
    throw new StartError(
      `${where} is not the media store that contains the files of this database: ${STORE_REMEDY}. ` +
        "If that store is lost, run UPDATE media_store SET identity = NULL",
    );
  }
  // Another process may have recorded its store since the read above. Then this check starts again with that store.
  if ((await rows(db, CLAIM_STORE, [identity, recorded])).length === 0) return claimStore(options);
  if (recorded !== null) log.warn({ store: where }, "the media store of this database was changed");
}
