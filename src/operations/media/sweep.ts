/**
 * Deletes blobs that no file uses, and compares the media store with the database. Logs files whose blob is missing,
 * but does not delete these files, because the media store may be unavailable only for a while.
 */
import type { Logger } from "pino";
import { type Db, rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import type { UploadReceiver } from "../../engine/reception.js";
import type { MediaBlobs } from "./blobs.js";

/** Key of the PostgreSQL advisory lock that a backup holds while it reads files. The number has no meaning. */
export const BACKUP_LOCK_KEY = 7_203_114_285_023;
/* Selects true if no backup is running. Tests this by acquiring the lock for the duration of the statement. */
const SELECT_IS_BACKUP_ABSENT = "SELECT pg_try_advisory_xact_lock_shared($1) AS free";

/** Interval in milliseconds between two sweeps of this process. */
const SWEEP_INTERVAL_MS = 30_000;
/** Interval at which a process compares the whole media store with the database. */
const COMPARE_INTERVAL_MS = 6 * 3_600_000;
/** Time in milliseconds from the start of a process to its first comparison, so that the start is not delayed. */
const FIRST_COMPARE_DELAY_MS = 600_000;
/** Maximum number of blobs or files that one query reads. */
const BATCH_SIZE = 500;
/** Minimum age of a deleted blob without a row, because the transaction with the row of a younger one may not be committed yet. */
const ORPHAN_MIN_AGE_MS = 3_600_000;
/**
 * Minimum time in milliseconds from the first comparison that finds a blob without a row to its deletion. After the
 * database was reset to an earlier state, newer blobs have no row, and an administrator has this time to copy them. It is
 * shorter than the interval of the comparisons, so that the next comparison deletes the blob.
 */
const ORPHAN_WAIT_MS = COMPARE_INTERVAL_MS - 3_600_000;
/** Maximum number of file IDs that the log message about missing blobs names. */
const LOGGED_FILE_IDS_MAX = 20;

/** Marks blobs as missing in the media store. $1 is the list of their keys. */
const MARK_BLOBS_MISSING = `
  UPDATE media_blob SET lost_at = now() WHERE held_until IS NULL AND lost_at IS NULL AND key = ANY ($1)`;
/** Removes the mark "missing" from blobs that are in the media store. $1 is the list of their keys. */
const UNMARK_BLOBS_MISSING = "UPDATE media_blob SET lost_at = NULL WHERE lost_at IS NOT NULL AND key = ANY ($1)";

/** Stores when blobs without a row were found first. $1 is the list of their keys. */
const RECORD_ORPHANS = "INSERT INTO media_orphan (key) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING";
/** Selects the blobs of the list $1 that were found first at least $2 milliseconds ago. */
const SELECT_DUE_ORPHANS = `
  SELECT key FROM media_orphan WHERE key = ANY ($1) AND found_at <= now() - $2 * interval '1 millisecond'`;
const FORGET_ORPHAN = "DELETE FROM media_orphan WHERE key = $1";
/** Deletes records of blobs from more than seven days ago, most of which are gone. The next comparison records the others again. */
const FORGET_OLD_ORPHANS = "DELETE FROM media_orphan WHERE found_at < now() - interval '7 days'";

export interface MediaComparison {
  /** Number of deleted blobs that had no row in the database. */
  orphanCount: number;
  /** IDs of the files whose blob is missing in the media store. */
  missingFileIds: number[];
}

interface MediaSweepOptions {
  db: Db;
  store: BlobStore;
  reception: UploadReceiver;
  blobs: MediaBlobs;
  /** True if this process's media store is the store that contains the database's files. */
  isOwnStore: () => Promise<boolean>;
  log: Logger;
  now?: () => number;
}

export class MediaSweep {
  private isStopped = false;
  private readonly now: () => number;
  private compareAt: number;

  constructor(private readonly options: MediaSweepOptions) {
    this.now = options.now ?? Date.now;
    this.compareAt = this.now() + FIRST_COMPARE_DELAY_MS;
  }

  /** True if no backup is running. A running backup may still need the blobs of files that were deleted after the backup started. */
  private async mayRemove() {
    return (await rows<{ free: boolean }>(this.options.db, SELECT_IS_BACKUP_ABSENT, [BACKUP_LOCK_KEY]))[0]!.free;
  }

  /** Deletes a blob from the media store and the folder for received files. A crash during the move leaves the bytes in both. */
  private async removeBytes(key: string): Promise<void> {
    const { store, reception } = this.options;
    await reception.discard(key);
    await store.remove(key);
  }

  /** Deletes blobs that are marked as unused, and blobs of uploads whose lease has expired. */
  private async removeUnused(): Promise<void> {
    const { blobs } = this.options;
    if (!(await this.mayRemove())) return;
    for (
      let keys = await blobs.unusedKeys(BATCH_SIZE);
      keys.length > 0 && !this.isStopped;
      keys = await blobs.unusedKeys(BATCH_SIZE)
    ) {
      for (const key of keys) if (!this.isStopped) await this.removeBlob(key);
      if (keys.length < BATCH_SIZE || !(await this.mayRemove())) return;
    }
  }

  /**
   * Deletes the blobs that have no row in the database, such as those of a deleted app, ORPHAN_WAIT_MS after a comparison
   * found them first. Deletes none while a backup is running. Returns the number of deleted blobs, and the keys of all blobs in the media store.
   */
  private async removeOrphans(): Promise<{ orphans: number; stored: Set<string> }> {
    const { db, store, blobs } = this.options;
    const stored = new Set<string>();
    let orphanCount = 0;
    let batch: string[] = [];
    const removeUnknownFiles = async () => {
      const orphanKeys = await blobs.keysWithoutRow(batch);
      await db.query(RECORD_ORPHANS, [orphanKeys]);
      for (const { key } of await rows<{ key: string }>(db, SELECT_DUE_ORPHANS, [orphanKeys, ORPHAN_WAIT_MS])) {
        if (!(await this.mayRemove())) break;
        await store.remove(key);
        await db.query(FORGET_ORPHAN, [key]);
        orphanCount += 1;
      }
      batch = [];
    };
    for await (const { key, modifiedAt } of store.list()) {
      if (this.isStopped) break;
      stored.add(key);
      if (Date.now() - modifiedAt < ORPHAN_MIN_AGE_MS) continue;
      batch.push(key);
      if (batch.length >= BATCH_SIZE) await removeUnknownFiles();
    }
    await removeUnknownFiles();
    await db.query(FORGET_OLD_ORPHANS);
    return { orphans: orphanCount, stored };
  }

  /**
   * Returns the IDs of files whose blob is missing in the media store.
   * @param stored keys of all blobs in the media store
   * @param before time at which the keys were listed; newer files are not checked
   */
  private async findLost(stored: ReadonlySet<string>, before: Date): Promise<number[]> {
    const { db } = this.options;
    const lostFileIds: number[] = [];
    for (let after = 0; ; ) {
      const page = await rows<{ id: number; blobKey: string; thumbnailKey: string | null }>(
        db,
        `SELECT id, blob_key AS "blobKey", thumbnail_key AS "thumbnailKey" FROM media_file
          WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT ${BATCH_SIZE}`,
        [after, before],
      );
      if (page.length === 0 || this.isStopped) return lostFileIds;
      const keys = page.flatMap(({ blobKey, thumbnailKey }) => [
        blobKey,
        ...(thumbnailKey === null ? [] : [thumbnailKey]),
      ]);
      await db.query(MARK_BLOBS_MISSING, [keys.filter((key) => !stored.has(key))]);
      await db.query(UNMARK_BLOBS_MISSING, [keys.filter((key) => stored.has(key))]);
      for (const { id, blobKey } of page) if (!stored.has(blobKey)) lostFileIds.push(id);
      after = page.at(-1)!.id;
    }
  }

  /** Deletes a blob and its row. Does nothing while a backup is running; a later sweep then deletes the blob. */
  async removeBlob(key: string): Promise<void> {
    if (await this.mayRemove()) await this.options.blobs.removeUnlessUsed(key, (key) => this.removeBytes(key));
  }

  /** Finds blobs without a row in the database, and files without a blob in the media store. */
  async compare(): Promise<MediaComparison> {
    const { log } = this.options;
    const before = new Date(Date.now() - 1_000);
    const { orphans: orphanCount, stored } = await this.removeOrphans();
    const lostFileIds = this.isStopped ? [] : await this.findLost(stored, before);
    if (orphanCount > 0)
      log.warn({ orphans: orphanCount }, "removed blobs from the media store that have no row in the database");
    if (lostFileIds.length > 0) {
      log.error(
        { count: lostFileIds.length, fileIds: lostFileIds.slice(0, LOGGED_FILE_IDS_MAX) },
        "the content of files is missing in the media store; restore it from a backup, or delete the files",
      );
    }
    return { orphanCount, missingFileIds: lostFileIds };
  }

  /** Runs one sweep. Returns the time of the next sweep as Unix time in milliseconds. */
  async sweep(): Promise<number> {
    const { reception, isOwnStore } = this.options;
    await reception.removeOldFiles(ORPHAN_MIN_AGE_MS);
    // Skips the sweep if this process uses another media store than the API processes, because all files would seem to be missing.
    if (!(await isOwnStore())) return Date.now() + SWEEP_INTERVAL_MS;
    await this.removeUnused();
    if (this.now() >= this.compareAt && !this.isStopped) {
      this.compareAt = this.now() + COMPARE_INTERVAL_MS;
      await this.compare();
    }
    return Date.now() + SWEEP_INTERVAL_MS;
  }

  /** Stops a running sweep after the blob that it is deleting now. */
  stop(): void {
    this.isStopped = true;
  }
}
