/**
 * Synchronizes the store and the database: removes blobs that are not needed, and finds leftovers in either. Files that only the database
 * has are reported to the operator and never deleted: a bucket may be unavailable.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import type { Reception } from "../../engine/reception.js";
import type { Blobs } from "./blobs.js";

/** A backup under way has it: what was a file at its moment is read yet. Any number that nothing else on the database takes. */
export const BACKUP_LOCK = 7_203_114_285_023;
/* Given back as the statement ends. */
const NO_BACKUP = "SELECT pg_try_advisory_xact_lock_shared($1) AS free";

const EVERY_MS = 30_000;
const COMPARE_EVERY_MS = 6 * 3_600_000;
const BATCH = 500;
/** A blob without a row may be one whose row is not yet committed; a received file waits for its turn to be looked at. */
const YOUNG_MS = 3_600_000;
/** Lost files whose ids the log names. */
const NAMED = 20;

/* $1 keys that are in the store, $2 since when rows are meant. */
const LOST = `
  UPDATE media_blob SET lost_at = now() WHERE held_until IS NULL AND lost_at IS NULL AND key = ANY ($1)`;
const FOUND = "UPDATE media_blob SET lost_at = NULL WHERE lost_at IS NOT NULL AND key = ANY ($1)";

export interface Found {
  /** In the store and not in the database: removed. */
  orphans: number;
  /** In the database and not in the store: the ids of their files. */
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
  let stopped = false;
  let comparedAt = Date.now();

  /** Its file is gone by now: a backup that begins later does not see it. */
  const mayRemove = async () => (await rows<{ free: boolean }>(db, NO_BACKUP, [BACKUP_LOCK]))[0]!.free;

  /** From the store, and from where it came in: its process may have died on the way. */
  async function removeBytes(key: string): Promise<void> {
    await reception.discard(key);
    await store.remove(key);
  }

  /** Not while a backup is under way: the sweep comes again. */
  async function removeBlob(key: string): Promise<void> {
    if (await mayRemove()) await blobs.drop(key, removeBytes);
  }

  /** Those that are marked as given up, or whose process holds them no longer. */
  async function removeUnneeded(): Promise<void> {
    if (!(await mayRemove())) return;
    for (let keys = await blobs.unneeded(BATCH); keys.length > 0 && !stopped; keys = await blobs.unneeded(BATCH)) {
      for (const key of keys) if (!stopped) await removeBlob(key);
      if (keys.length < BATCH || !(await mayRemove())) return;
    }
  }

  /** Removes files that only the store has, and returns all files of the store. */
  async function removeOrphans(): Promise<{ orphans: number; stored: Set<string> }> {
    const stored = new Set<string>();
    let orphans = 0;
    let batch: string[] = [];
    const judge = async () => {
      for (const key of await blobs.unknown(batch)) {
        await store.remove(key);
        orphans += 1;
      }
      batch = [];
    };
    for await (const { key, modifiedAt } of store.list()) {
      if (stopped) break;
      stored.add(key);
      if (Date.now() - modifiedAt < YOUNG_MS) continue;
      batch.push(key);
      if (batch.length >= BATCH) await judge();
    }
    await judge();
    return { orphans, stored };
  }

  /** Of the blobs that files have, which are not among the stored. */
  async function findLost(stored: ReadonlySet<string>, before: Date): Promise<number[]> {
    const lost: number[] = [];
    for (let after = 0; ; ) {
      const page = await rows<{ id: number; blobKey: string; thumbnailKey: string | null }>(
        db,
        `SELECT id, blob_key AS "blobKey", thumbnail_key AS "thumbnailKey" FROM media_file
          WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT ${BATCH}`,
        [after, before],
      );
      if (page.length === 0 || stopped) return lost;
      const keys = page.flatMap(({ blobKey, thumbnailKey }) => [
        blobKey,
        ...(thumbnailKey === null ? [] : [thumbnailKey]),
      ]);
      await db.query(LOST, [keys.filter((key) => !stored.has(key))]);
      await db.query(FOUND, [keys.filter((key) => stored.has(key))]);
      for (const { id, blobKey } of page) if (!stored.has(blobKey)) lost.push(id);
      after = page.at(-1)!.id;
    }
  }

  /** Looks at all that there is, in both. */
  async function compare(): Promise<Found> {
    const before = new Date(Date.now() - 1_000);
    const { orphans, stored } = await removeOrphans();
    const lost = stopped ? [] : await findLost(stored, before);
    if (orphans > 0) log.warn({ orphans }, "removed media from the store that the database does not know");
    if (lost.length > 0) {
      log.error({ count: lost.length, fileIds: lost.slice(0, NAMED) }, "media of the database are not in the store");
    }
    return { orphans, lost };
  }

  return {
    removeBlob,
    compare,

    /** One look. Answers with the Unix time in milliseconds at which to come again. */
    async sweep(): Promise<number> {
      await reception.sweep(YOUNG_MS);
      // In another store every file would be missing.
      if (!(await isOwnStore())) return Date.now() + EVERY_MS;
      await removeUnneeded();
      if (Date.now() - comparedAt >= COMPARE_EVERY_MS && !stopped) {
        comparedAt = Date.now();
        await compare();
      }
      return Date.now() + EVERY_MS;
    },

    /** Ends a sweep under way. */
    stop(): void {
      stopped = true;
    },
  };
}
