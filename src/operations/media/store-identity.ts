/** Checks that all API processes on one database use one media store. Read this file when a start is refused because of its store. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import { StartError } from "../../errors.js";

const CLAIM_STORE = "UPDATE media_store SET identity = $1 WHERE identity IS NULL OR identity = $2 RETURNING identity";

/** Selects the other processes that use the store; $1 is this process. */
const USE = `
  SELECT EXISTS (SELECT FROM instance WHERE id <> $1 AND 'api' = ANY (roles) AND lease_until >= now()) AS "isServed",
         EXISTS (SELECT FROM media_file) AS "hasFiles"`;

const isLocal = (identity: string): boolean => !identity.startsWith("s3:");

const STORE_REMEDY =
  "give every process the same DATA_DIR/media, on a shared volume, or the same bucket by MEDIA_URL (docs/operate/several-machines.md)";

/** Returns the recorded identity of the database's media store; null before the first API process has started. */
export async function recordedIdentity(db: DataSource): Promise<string | null> {
  const [storeRow] = await rows<{ identity: string | null }>(db, "SELECT identity FROM media_store");
  return storeRow!.identity;
}

/**
 * Records this process's media store as the store of the database.
 * @param where description of the store for people
 * @throws StartError if the database's files are in another store
 */
export async function claimStore(options: {
  db: DataSource;
  store: BlobStore;
  where: string;
  instance: string;
  log: Logger;
}): Promise<void> {
  const { db, store, where, instance, log } = options;
  const identity = await store.identity();
  const recorded = await recordedIdentity(db);
  if (recorded === identity) return;
  const [use] = await rows<{ isServed: boolean; hasFiles: boolean }>(db, USE, [instance]);
  const { isServed, hasFiles } = use!;
  if (recorded !== null && isServed) {
    throw new StartError(`${where} is not the media store of the processes that run on this database: ${STORE_REMEDY}`);
  }
  if (recorded !== null && hasFiles && isLocal(recorded) && isLocal(identity)) {
    throw new StartError(
      `${where} is not the media store that has this database's files: ${STORE_REMEDY}. ` +
        "If that store is lost, run UPDATE media_store SET identity = NULL",
    );
  }
  // If two processes start at the same time, the store of the first one is recorded, and the other is refused.
  if ((await rows(db, CLAIM_STORE, [identity, recorded])).length === 0) return claimStore(options);
  if (recorded !== null) log.warn({ store: where }, "the media store has changed");
}
