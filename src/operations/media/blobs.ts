/**
 * Tracks the blobs of media: reserves an app's quota before the first byte arrives, and finds blobs that no file uses.
 * A blob is the bytes of one file in the media store.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MEDIA_BLOB_MIN_BYTES } from "../../limits.js";

/**
 * Seconds for which a blob that is being received is leased, and the interval of renewals. After a process died, its
 * blobs are free within a minute.
 */
const HOLD_SECONDS = 60;
const RENEW_MS = 15_000;

/**
 * Maximum number of concurrent writes for uploads. Writes of one app wait for each other at its usage row: hundreds of them would occupy
 * every connection of the process.
 */
const CONCURRENT_WRITES = 2;
const WRITES_OF_APP = 1;

const HOLD_END = `now() + ${HOLD_SECONDS} * interval '1 second'`;

/**
 * Reserves quota. $1 is the app, $2 the bytes, $3 the quota (null: none), $4 the key. Returns no row if the quota would be exceeded.
 * Concurrent calls wait for each other here.
 */
const RESERVE_BLOB = `
  WITH taken AS (
    INSERT INTO media_usage AS kept (app_id, bytes) SELECT $1, $2::bigint WHERE $3::bigint IS NULL OR $2::bigint <= $3
    ON CONFLICT (app_id) DO UPDATE SET bytes = kept.bytes + excluded.bytes
      WHERE $3::bigint IS NULL OR kept.bytes + excluded.bytes <= $3
    RETURNING app_id)
  INSERT INTO media_blob AS blob (key, app_id, bytes, held_until) SELECT $4, app_id, $2, ${HOLD_END} FROM taken
  ON CONFLICT (key) DO UPDATE SET bytes = blob.bytes + excluded.bytes
  RETURNING key`;

/** Assigns a blob to a file. $1 is the key, $2 the bytes. Returns no row if the lease had expired and the blob was removed. */
const SETTLE_BLOB = `
  WITH before AS (SELECT key, app_id, bytes FROM media_blob WHERE key = $1 AND held_until <> '-infinity' FOR NO KEY UPDATE),
  settled AS (UPDATE media_blob SET bytes = $2, held_until = NULL FROM before WHERE media_blob.key = before.key RETURNING before.app_id),
  counted AS (UPDATE media_usage SET bytes = media_usage.bytes + $2 - before.bytes FROM before WHERE media_usage.app_id = before.app_id)
  SELECT app_id FROM settled`;

/**
 * Marks a blob as unused. $1 is the key. Returns no row if a file uses the blob, which must then stay. After a row was
 * returned, no file can use the blob any more.
 */
const ABANDON_BLOB =
  "UPDATE media_blob SET held_until = '-infinity' WHERE key = $1 AND held_until IS NOT NULL RETURNING key";

/** Deletes the row of the blob $1 and frees its share of the quota. */
const RELEASE = `
  WITH gone AS (DELETE FROM media_blob WHERE key = $1 AND held_until = '-infinity' RETURNING app_id, bytes)
  UPDATE media_usage SET bytes = media_usage.bytes - gone.bytes FROM gone WHERE media_usage.app_id = gone.app_id`;

export type Blobs = ReturnType<typeof createBlobs>;

/** @param quotaBytes quota of one app; 0 means unlimited */
export function createBlobs({ db, quotaBytes, log }: { db: DataSource; quotaBytes: number; log: Logger }) {
  const heldKeys = new Set<string>();
  const line = new FairSemaphore(CONCURRENT_WRITES, WRITES_OF_APP);
  let timer: NodeJS.Timeout | undefined;

  function renewHolds(): void {
    if (heldKeys.size === 0) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const sql = `UPDATE media_blob SET held_until = ${HOLD_END} WHERE key = ANY ($1) AND held_until <> '-infinity'`;
    db.query(sql, [[...heldKeys]]).catch((error: unknown) =>
      log.warn({ err: error }, "the lease of uploads could not be renewed; they may be lost"),
    );
  }

  function holdKey(key: string): void {
    heldKeys.add(key);
    timer ??= setInterval(renewHolds, RENEW_MS).unref();
  }

  /** Runs a database write for an upload in its app's turn. */
  async function writeInTurn<T>(appId: number, write: () => Promise<T>): Promise<T> {
    const leaveQueue = await line.enter(appId);
    return write().finally(leaveQueue);
  }

  return {
    inTurn: writeInTurn,

    /** Returns the bytes that a blob of this size takes from the quota. */
    counted: (bytes: number) => Math.max(bytes, MEDIA_BLOB_MIN_BYTES),

    /** Reserves quota for a blob, or more for a blob that grows. @throws ActionError PAYLOAD_TOO_LARGE if the app's quota is exceeded */
    async reserve(appId: number, key: string, bytes: number): Promise<void> {
      const quotaOrNull = quotaBytes === 0 ? null : quotaBytes;
      holdKey(key);
      const [reserved] = await writeInTurn(appId, () => rows(db, RESERVE_BLOB, [appId, bytes, quotaOrNull, key]));
      if (reserved) return;
      const message = `an app's media may take ${quotaBytes / 2 ** 20} MB together, and there is no room for this file`;
      throw new ActionError("PAYLOAD_TOO_LARGE", message);
    },

    /**
     * Gives the blob to a file. Call it in the transaction that stores the file.
     * @throws ActionError OVERLOADED if the lease of the blob has expired
     */
    async settle(executor: Executor, key: string, bytes: number): Promise<void> {
      const settled = await rows(executor, SETTLE_BLOB, [key, Math.max(bytes, MEDIA_BLOB_MIN_BYTES)]);
      if (settled.length === 0)
        throw new ActionError("OVERLOADED", "the upload took too long, try again", { retryAfter: 1 });
    },

    /** Stops renewing the lease of a blob after its upload. */
    let(key: string): void {
      heldKeys.delete(key);
    },

    /** Marks blobs as unused, in the transaction that deletes their files. */
    async giveUp(executor: Executor, keys: readonly string[]): Promise<void> {
      await rows(executor, "UPDATE media_blob SET held_until = '-infinity' WHERE key = ANY ($1)", [keys]);
    },

    /**
     * Removes the blob with `remove`, and its row, unless a file uses the blob: a commit may have succeeded although
     * its response was lost.
     * @param appId app of the upload; the sweep, which removes blobs one by one, need not pass it
     */
    async drop(key: string, remove: (key: string) => Promise<void>, appId = 0): Promise<void> {
      heldKeys.delete(key);
      const abandonedBlobs = await writeInTurn(appId, () => rows(db, ABANDON_BLOB, [key]));
      if (abandonedBlobs.length === 0) return;
      await remove(key);
      await writeInTurn(appId, () => rows(db, RELEASE, [key]));
    },

    /** Returns the keys of the first unused blobs. */
    async unneeded(limit: number): Promise<string[]> {
      const blobRows = await rows<{ key: string }>(
        db,
        "SELECT key FROM media_blob WHERE held_until < now() ORDER BY held_until LIMIT $1",
        [limit],
      );
      return blobRows.map(({ key }) => key);
    },

    /** Returns the keys that have no row in the database. */
    async unknown(keys: readonly string[]): Promise<string[]> {
      const blobRows = await rows<{ key: string }>(
        db,
        `SELECT key FROM unnest($1::text[]) AS stored (key)
          WHERE NOT EXISTS (SELECT FROM media_blob WHERE media_blob.key = stored.key)`,
        [keys],
      );
      return blobRows.map(({ key }) => key);
    },

    /** Returns the bytes of its quota that the app's media use. */
    async usage(appId: number): Promise<number> {
      const [blobRows] = await rows<{ bytes: number }>(db, "SELECT bytes FROM media_usage WHERE app_id = $1", [appId]);
      return blobRows?.bytes ?? 0;
    },

    stop: (): void => clearInterval(timer),
  };
}
