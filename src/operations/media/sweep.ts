/**
 * Periodic cleanup of the media store: deletes blobs (stored contents) that no file uses, and logs files whose blob is missing. Does not
 * delete files without a blob, because an administrator may restore the blobs from a backup.
 */
import type { Logger } from "pino";
import { type Db, rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import type { UploadReceiver } from "../../engine/reception.js";
import type { MediaBlobs } from "./blobs.js";

/** Key of the PostgreSQL advisory lock that a backup holds while it reads files. The number has no meaning. */
export const BACKUP_LOCK_KEY = 7_203_114_285_023;
/* Selects true if no backup is running, that is, if the statement can acquire the backup's lock. */
const SELECT_IS_BACKUP_ABSENT = "SELECT pg_try_advisory_xact_lock_shared($1) AS free";

const SWEEP_INTERVAL_MS = 30_000;
/** Interval at which a process compares the whole media store with the database. */
const COMPARE_INTERVAL_MS = 6 * 3_600_000;
/** Time from the start of a process to its first comparison of the media store with the database. */
const FIRST_COMPARE_DELAY_MS = 600_000;
/** Time from the start of a failed comparison to the next attempt. It is long, because each attempt lists the whole media store. */
const COMPARE_RETRY_MS = 60_000;
const BATCH_SIZE = 500;
/**
 * Minimum age of a blob without a row before it is deleted. The row of a younger blob may be in a transaction that is not committed yet.
 */
const ORPHAN_MIN_AGE_MS = 3_600_000;
/**
 * Time from finding a blob without a row to its deletion. If an administrator has restored an old database by mistake, a newer database
 * with the row can be restored in this time.
 */
const ORPHAN_WAIT_MS = COMPARE_INTERVAL_MS - 3_600_000;
const LOGGED_FILE_IDS_MAX = 20;

const MARK_BLOBS_MISSING = `
  UPDATE media_blob SET lost_at = now() WHERE held_until IS NULL AND lost_at IS NULL AND key = ANY ($1)`;
const UNMARK_BLOBS_MISSING = "UPDATE media_blob SET lost_at = NULL WHERE lost_at IS NOT NULL AND key = ANY ($1)";

/** Stores the time at which blobs without a row were found. $1 is the list of their keys. Earlier times stay unchanged. */
const RECORD_ORPHANS = "INSERT INTO media_orphan (key) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING";
const SELECT_DUE_ORPHANS = `
  SELECT key FROM media_orphan WHERE key = ANY ($1) AND found_at <= now() - $2 * interval '1 millisecond'`;
const FORGET_ORPHAN = "DELETE FROM media_orphan WHERE key = $1";
/** Deletes old records of blobs without a row. If the blob still exists, the next comparison records it again. */
const FORGET_OLD_ORPHANS = "DELETE FROM media_orphan WHERE found_at < now() - interval '7 days'";

export interface MediaStoreComparison {
  orphanCount: number;
  missingFileIds: number[];
}

interface MediaSweepOptions {
  db: Db;
  store: BlobStore;
  uploadReceiver: UploadReceiver;
  blobs: MediaBlobs;
  /** True if this process uses the media store that contains the database's files. */
  isOwnStore: () => Promise<boolean>;
  log: Logger;
  now?: () => number;
}

export class MediaSweep {
  private isStopped = false;
  private readonly now: () => number;
  private nextCompareAt: number;

  constructor(private readonly options: MediaSweepOptions) {
    this.now = options.now ?? Date.now;
    this.nextCompareAt = this.now() + FIRST_COMPARE_DELAY_MS;
  }

  /** True if no backup is running. A running backup may still read the blobs of deleted files. */
  private async mayRemoveBlobs() {
    return (await rows<{ free: boolean }>(this.options.db, SELECT_IS_BACKUP_ABSENT, [BACKUP_LOCK_KEY]))[0]!.free;
  }

  /** Deletes the bytes of a blob. After a crash during an upload, they can be in the folder for received files and in the media store. */
  private async removeBytes(key: string): Promise<void> {
    const { store, uploadReceiver } = this.options;
    await uploadReceiver.discard(key);
    await store.remove(key);
  }

  private async removeUnused(): Promise<void> {
    const { blobs } = this.options;
    if (!(await this.mayRemoveBlobs())) return;
    for (
      let keys = await blobs.listUnusedKeys(BATCH_SIZE);
      keys.length > 0 && !this.isStopped;
      keys = await blobs.listUnusedKeys(BATCH_SIZE)
    ) {
      for (const key of keys) if (!this.isStopped) await this.removeBlob(key);
      if (keys.length < BATCH_SIZE || !(await this.mayRemoveBlobs())) return;
    }
  }

  /**
   * Finds blobs without a row in the database, such as those of a deleted app. Deletes those that were first found ORPHAN_WAIT_MS ago or
   * earlier.
   * @returns `stored`: keys of all blobs in the media store; `orphans`: number of deleted blobs
   */
  private async removeOrphans(): Promise<{ orphans: number; stored: Set<string> }> {
    const { db, store, blobs } = this.options;
    const storedKeys = new Set<string>();
    let orphanCount = 0;
    let batch: string[] = [];
    const removeDueOrphans = async () => {
      const orphanKeys = await blobs.listKeysWithoutRow(batch);
      await db.query(RECORD_ORPHANS, [orphanKeys]);
      for (const { key } of await rows<{ key: string }>(db, SELECT_DUE_ORPHANS, [orphanKeys, ORPHAN_WAIT_MS])) {
        if (!(await this.mayRemoveBlobs())) break;
        await store.remove(key);
        await db.query(FORGET_ORPHAN, [key]);
        orphanCount += 1;
      }
      batch = [];
    };
    for await (const { key, modifiedAt } of store.list()) {
      if (this.isStopped) break;
      storedKeys.add(key);
      if (Date.now() - modifiedAt < ORPHAN_MIN_AGE_MS) continue;
      batch.push(key);
      if (batch.length >= BATCH_SIZE) await removeDueOrphans();
    }
    await removeDueOrphans();
    await db.query(FORGET_OLD_ORPHANS);
    return { orphans: orphanCount, stored: storedKeys };
  }

  /**
   * Returns the IDs of files whose blob is missing in the media store. Also marks the missing blobs in the database.
   * @param stored keys of all blobs in the media store
   * @param before checks only files that were created before this time
   */
  private async findFilesWithMissingBlob(stored: ReadonlySet<string>, before: Date): Promise<number[]> {
    const { db } = this.options;
    const missingFileIds: number[] = [];
    for (let after = 0; ; ) {
      const page = await rows<{ id: number; blobKey: string; thumbnailKey: string | null }>(
        db,
        `SELECT id, blob_key AS "blobKey", thumbnail_key AS "thumbnailKey" FROM media_file
          WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT ${BATCH_SIZE}`,
        [after, before],
      );
      if (page.length === 0 || this.isStopped) return missingFileIds;
      const keys = page.flatMap(({ blobKey, thumbnailKey }) => [
        blobKey,
        ...(thumbnailKey === null ? [] : [thumbnailKey]),
      ]);
      await db.query(MARK_BLOBS_MISSING, [keys.filter((key) => !stored.has(key))]);
      await db.query(UNMARK_BLOBS_MISSING, [keys.filter((key) => stored.has(key))]);
      for (const { id, blobKey } of page) if (!stored.has(blobKey)) missingFileIds.push(id);
      after = page.at(-1)!.id;
    }
  }

  /** Deletes an unused blob and its row. Does nothing while a backup is running; a later sweep then deletes the blob. */
  async removeBlob(key: string): Promise<void> {
    if (await this.mayRemoveBlobs()) await this.options.blobs.removeUnlessUsed(key, (key) => this.removeBytes(key));
  }

  /** Deletes blobs that have had no row in the database for ORPHAN_WAIT_MS. Finds files whose blob is missing in the media store. */
  async compare(): Promise<MediaStoreComparison> {
    const { log } = this.options;
    const before = new Date(Date.now() - 1_000);
    const { orphans: orphanCount, stored } = await this.removeOrphans();
    const missingFileIds = this.isStopped ? [] : await this.findFilesWithMissingBlob(stored, before);
    if (orphanCount > 0)
      log.warn({ orphans: orphanCount }, "removed blobs from the media store that have no row in the database");
    if (missingFileIds.length > 0) {
      log.error(
        { count: missingFileIds.length, fileIds: missingFileIds.slice(0, LOGGED_FILE_IDS_MAX) },
        "the content of files is missing in the media store; restore it from a backup, or delete the files",
      );
    }
    return { orphanCount, missingFileIds: missingFileIds };
  }

  /** Runs one cleanup. Returns the time of the next one as Unix time in milliseconds. */
  async sweep(): Promise<number> {
    const { uploadReceiver, isOwnStore } = this.options;
    await uploadReceiver.removeOldFiles(ORPHAN_MIN_AGE_MS);
    // If this process uses another media store than the API processes, all files would seem to be missing.
    if (!(await isOwnStore())) return Date.now() + SWEEP_INTERVAL_MS;
    await this.removeUnused();
    if (this.now() >= this.nextCompareAt && !this.isStopped) {
      this.nextCompareAt = this.now() + COMPARE_RETRY_MS;
      await this.compare();
      this.nextCompareAt = this.now() + COMPARE_INTERVAL_MS;
    }
    return Date.now() + SWEEP_INTERVAL_MS;
  }

  /** Ends a running cleanup after the blob that it is deleting now. */
  stop(): void {
    this.isStopped = true;
  }
}
