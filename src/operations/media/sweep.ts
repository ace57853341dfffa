/**
 * Compares the media store with the database, and removes blobs that no file uses. Reports files whose blob is missing
 * to the operator, but never deletes them, because a bucket may only be unavailable.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import type { Reception } from "../../engine/reception.js";
import type { Blobs } from "./blobs.js";

/** Key of the lock that a backup holds while it reads files. It is an arbitrary number that nothing else uses. */
export const BACKUP_LOCK = 7_203_114_285_023;
/* Selects whether no backup runs. The lock is released when the statement ends. */
const NO_BACKUP = "SELECT pg_try_advisory_xact_lock_shared($1) AS free";

const EVERY_MS = 30_000;
const COMPARE_EVERY_MS = 6 * 3_600_000;
const BATCH = 500;
/** Minimum age in milliseconds of a blob that may be removed: the row of a younger one may not be committed yet. */
const YOUNG_MS = 3_600_000;
/** Maximum number of IDs of lost files in the log. */
const NAMED_FILES_MAX = 20;

/** Marks files whose blob is missing. $1 are the keys in the store, $2 the maximum creation time of the rows. */
const MARK_LOST = `
  UPDATE media_blob SET lost_at = now() WHERE held_until IS NULL AND lost_at IS NULL AND key = ANY ($1)`;
const UNMARK_FOUND = "UPDATE media_blob SET lost_at = NULL WHERE lost_at IS NOT NULL AND key = ANY ($1)";

export interface SweepResult {
  /** Number of blobs without a row in the database, which were removed. */
  orphans: number;
  /** IDs of files whose blob is missing in the store. */
  lost: number[];
}

export type MediaSweep = ReturnType<typeof createMediaSweep>;

export function createMediaSweep(options: {
  db: DataSource;
  store: BlobStore;
  reception: Reception;
  blobs: Blobs;
  /** True if the database's files are in this process's store. */
  isOwnStore: () => Promise<boolean>;
  log: Logger;
}) {
  const { db, store, reception, blobs, isOwnStore, log } = options;
  let isStopped = false;
  let comparedAt = Date.now();

  /** True if no backup runs. A backup that starts later does not contain the deleted files. */
  const mayRemove = async () => (await rows<{ free: boolean }>(db, NO_BACKUP, [BACKUP_LOCK]))[0]!.free;

  /** Removes a blob from the store and from the folder of received files: it is in both if its process died while it moved the file. */
  async function removeBytes(key: string): Promise<void> {
    await reception.discard(key);
    await store.remove(key);
  }

  /** Removes a blob, unless a backup runs; then a later sweep removes it. */
  async function removeBlob(key: string): Promise<void> {
    if (await mayRemove()) await blobs.drop(key, removeBytes);
  }

  /** Removes blobs that are marked as unused, or whose lease has expired. */
  async function removeUnneeded(): Promise<void> {
    if (!(await mayRemove())) return;
    for (let keys = await blobs.unneeded(BATCH); keys.length > 0 && !isStopped; keys = await blobs.unneeded(BATCH)) {
      for (const key of keys) if (!isStopped) await removeBlob(key);
      if (keys.length < BATCH || !(await mayRemove())) return;
    }
  }

  /** Removes blobs that have no row in the database. Returns the keys of all blobs in the store. */
  async function removeOrphans(): Promise<{ orphans: number; stored: Set<string> }> {
    const stored = new Set<string>();
    let orphanCount = 0;
    let batch: string[] = [];
    const removeUnknownFiles = async () => {
      for (const key of await blobs.unknown(batch)) {
        await store.remove(key);
        orphanCount += 1;
      }
      batch = [];
    };
    for await (const { key, modifiedAt } of store.list()) {
      if (isStopped) break;
      stored.add(key);
      if (Date.now() - modifiedAt < YOUNG_MS) continue;
      batch.push(key);
      if (batch.length >= BATCH) await removeUnknownFiles();
    }
    await removeUnknownFiles();
    return { orphans: orphanCount, stored };
  }

  /** Finds blobs that files use but the store lacks. */
  async function findLost(stored: ReadonlySet<string>, before: Date): Promise<number[]> {
    const lostFileIds: number[] = [];
    for (let after = 0; ; ) {
      const page = await rows<{ id: number; blobKey: string; thumbnailKey: string | null }>(
        db,
        `SELECT id, blob_key AS "blobKey", thumbnail_key AS "thumbnailKey" FROM media_file
          WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT ${BATCH}`,
        [after, before],
      );
      if (page.length === 0 || isStopped) return lostFileIds;
      const keys = page.flatMap(({ blobKey, thumbnailKey }) => [
        blobKey,
        ...(thumbnailKey === null ? [] : [thumbnailKey]),
      ]);
      await db.query(MARK_LOST, [keys.filter((key) => !stored.has(key))]);
      await db.query(UNMARK_FOUND, [keys.filter((key) => stored.has(key))]);
      for (const { id, blobKey } of page) if (!stored.has(blobKey)) lostFileIds.push(id);
      after = page.at(-1)!.id;
    }
  }

  /** Compares the whole store with the database. */
  async function compareStores(): Promise<SweepResult> {
    const before = new Date(Date.now() - 1_000);
    const { orphans: orphanCount, stored } = await removeOrphans();
    const lostFileIds = isStopped ? [] : await findLost(stored, before);
    if (orphanCount > 0)
      log.warn({ orphans: orphanCount }, "removed files from the media store that the database does not have");
    if (lostFileIds.length > 0) {
      log.error(
        { count: lostFileIds.length, fileIds: lostFileIds.slice(0, NAMED_FILES_MAX) },
        "files of the database are missing from the media store",
      );
    }
    return { orphans: orphanCount, lost: lostFileIds };
  }

  return {
    removeBlob,
    compare: compareStores,

    /** Runs one sweep. Returns the Unix time in milliseconds of the next one. */
    async sweep(): Promise<number> {
      await reception.sweep(YOUNG_MS);
      // Compared with a store that is not the database's, every file would be missing.
      if (!(await isOwnStore())) return Date.now() + EVERY_MS;
      await removeUnneeded();
      if (Date.now() - comparedAt >= COMPARE_EVERY_MS && !isStopped) {
        comparedAt = Date.now();
        await compareStores();
      }
      return Date.now() + EVERY_MS;
    },

    /** Stops a running sweep. */
    stop(): void {
      isStopped = true;
    },
  };
}
