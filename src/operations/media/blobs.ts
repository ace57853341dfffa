/**
 * Tracks the blobs of media in the database: reserves an app's quota before the first byte is received, and finds blobs
 * that no file uses. A blob is the content of one file (or thumbnail) in the media store.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MEDIA_BLOB_MIN_BYTES } from "../../limits.js";

/**
 * Lease of a blob during its upload. If the process ends during the upload, another process can delete the blob after
 * this time.
 */
const LEASE_SECONDS = 60;
/** Interval at which a process renews the leases of its uploads. */
const RENEW_MS = 15_000;

/**
 * Maximum number of concurrent database writes for uploads. Writes of one app wait for each other, because they lock
 * its row of used bytes. Without this limit, hundreds of uploads would occupy all database connections of the process.
 */
const CONCURRENT_WRITES = 2;
/** Maximum number of concurrent database writes for uploads of one app. */
const WRITES_OF_APP = 1;

const LEASE_END = `now() + ${LEASE_SECONDS} * interval '1 second'`;

/**
 * Reserves quota for a blob. $1 is the app, $2 the bytes, $3 the quota (null: unlimited), $4 the key of the blob.
 * Returns no row if the quota would be exceeded. Concurrent reservations of one app wait for each other.
 */
const RESERVE_BLOB = `
  WITH taken AS (
    INSERT INTO media_usage AS kept (app_id, bytes) SELECT $1, $2::bigint WHERE $3::bigint IS NULL OR $2::bigint <= $3
    ON CONFLICT (app_id) DO UPDATE SET bytes = kept.bytes + excluded.bytes
      WHERE $3::bigint IS NULL OR kept.bytes + excluded.bytes <= $3
    RETURNING app_id)
  INSERT INTO media_blob AS blob (key, app_id, bytes, held_until) SELECT $4, app_id, $2, ${LEASE_END} FROM taken
  ON CONFLICT (key) DO UPDATE SET bytes = blob.bytes + excluded.bytes
  RETURNING key`;

/**
 * Marks a blob as used by a file, and counts its final size. $1 is the key, $2 the bytes. Returns no row if the lease
 * had expired and the blob was removed.
 */
const MARK_USED = `
  WITH before AS (SELECT key, app_id, bytes FROM media_blob WHERE key = $1 AND held_until <> '-infinity' FOR NO KEY UPDATE),
  settled AS (UPDATE media_blob SET bytes = $2, held_until = NULL FROM before WHERE media_blob.key = before.key RETURNING before.app_id),
  counted AS (UPDATE media_usage SET bytes = media_usage.bytes + $2 - before.bytes FROM before WHERE media_usage.app_id = before.app_id)
  SELECT app_id FROM settled`;

/**
 * Marks a blob as unused, so that no file can use it any more. $1 is the key. Returns no row if a file already uses the
 * blob, which must then be kept.
 */
const MARK_UNUSED =
  "UPDATE media_blob SET held_until = '-infinity' WHERE key = $1 AND held_until IS NOT NULL RETURNING key";

/** Deletes the row of a blob and subtracts its bytes from the app's used quota. $1 is the key. */
const DELETE_BLOB = `
  WITH gone AS (DELETE FROM media_blob WHERE key = $1 AND held_until = '-infinity' RETURNING app_id, bytes)
  UPDATE media_usage SET bytes = media_usage.bytes - gone.bytes FROM gone WHERE media_usage.app_id = gone.app_id`;

export type Blobs = ReturnType<typeof createBlobs>;

/** Creates the operations on blobs. @param quotaBytes maximum size of one app's media; 0 means unlimited */
export function createBlobs({ db, quotaBytes, log }: { db: DataSource; quotaBytes: number; log: Logger }) {
  const leasedKeys = new Set<string>();
  const writeSlots = new FairSemaphore(CONCURRENT_WRITES, WRITES_OF_APP);
  let timer: NodeJS.Timeout | undefined;

  function renewLeases(): void {
    if (leasedKeys.size === 0) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const sql = `UPDATE media_blob SET held_until = ${LEASE_END} WHERE key = ANY ($1) AND held_until <> '-infinity'`;
    db.query(sql, [[...leasedKeys]]).catch((error: unknown) =>
      log.warn(
        { err: error },
        "renewing the leases of running uploads failed; if this continues, the uploads are lost",
      ),
    );
  }

  function startRenewing(key: string): void {
    leasedKeys.add(key);
    timer ??= setInterval(renewLeases, RENEW_MS).unref();
  }

  /** Runs a database write for an upload when a slot is free. Apps take turns. */
  async function writeInTurn<T>(appId: number, write: () => Promise<T>): Promise<T> {
    const leaveQueue = await writeSlots.enter(appId);
    return write().finally(leaveQueue);
  }

  return {
    inTurn: writeInTurn,

    /** Returns the number of bytes that a blob of this size uses of the quota. */
    quotaBytesOf: (bytes: number) => Math.max(bytes, MEDIA_BLOB_MIN_BYTES),

    /**
     * Reserves quota for a new blob, or additional quota for a growing blob. @throws ActionError PAYLOAD_TOO_LARGE if
     * the app's quota is exceeded
     */
    async reserve(appId: number, key: string, bytes: number): Promise<void> {
      const quotaOrNull = quotaBytes === 0 ? null : quotaBytes;
      startRenewing(key);
      const [reserved] = await writeInTurn(appId, () => rows(db, RESERVE_BLOB, [appId, bytes, quotaOrNull, key]));
      if (reserved) return;
      const message = `the media of one app can use at most ${quotaBytes / 2 ** 20} MB, and this file exceeds the rest; delete files first`;
      throw new ActionError("PAYLOAD_TOO_LARGE", message);
    },

    /**
     * Marks a blob as used by a file. Call it in the transaction that stores the file.
     * @throws ActionError OVERLOADED if the lease of the blob has expired
     */
    async markUsed(executor: Executor, key: string, bytes: number): Promise<void> {
      const settled = await rows(executor, MARK_USED, [key, Math.max(bytes, MEDIA_BLOB_MIN_BYTES)]);
      if (settled.length === 0)
        throw new ActionError(
          "OVERLOADED",
          "the upload lost its lease, because the service could not renew it; send the file again",
          { retryAfter: 1 },
        );
    },

    /** Stops renewing the lease of a blob when its upload has ended. */
    stopRenewing(key: string): void {
      leasedKeys.delete(key);
    },

    /** Marks blobs as unused. Call it in the transaction that deletes their files. */
    async markUnused(executor: Executor, keys: readonly string[]): Promise<void> {
      await rows(executor, "UPDATE media_blob SET held_until = '-infinity' WHERE key = ANY ($1)", [keys]);
    },

    /**
     * Removes a blob with `remove`, and its row, unless a file uses it. A file may use it although the upload failed:
     * the commit may have succeeded while its response was lost.
     * @param appId app whose turn it is; not needed by the sweep, which removes one blob at a time
     */
    async removeUnlessUsed(key: string, remove: (key: string) => Promise<void>, appId = 0): Promise<void> {
      leasedKeys.delete(key);
      const abandonedBlobs = await writeInTurn(appId, () => rows(db, MARK_UNUSED, [key]));
      if (abandonedBlobs.length === 0) return;
      await remove(key);
      await writeInTurn(appId, () => rows(db, DELETE_BLOB, [key]));
    },

    /** Returns the keys of up to `limit` unused blobs, including those with an expired lease. */
    async unusedKeys(limit: number): Promise<string[]> {
      const blobRows = await rows<{ key: string }>(
        db,
        "SELECT key FROM media_blob WHERE held_until < now() ORDER BY held_until LIMIT $1",
        [limit],
      );
      return blobRows.map(({ key }) => key);
    },

    /** Returns those of the keys that have no row in the database. */
    async keysWithoutRow(keys: readonly string[]): Promise<string[]> {
      const blobRows = await rows<{ key: string }>(
        db,
        `SELECT key FROM unnest($1::text[]) AS stored (key)
          WHERE NOT EXISTS (SELECT FROM media_blob WHERE media_blob.key = stored.key)`,
        [keys],
      );
      return blobRows.map(({ key }) => key);
    },

    /** Returns the number of bytes that the app's media use of the quota. */
    async usage(appId: number): Promise<number> {
      const [blobRows] = await rows<{ bytes: number }>(db, "SELECT bytes FROM media_usage WHERE app_id = $1", [appId]);
      return blobRows?.bytes ?? 0;
    },

    stop: (): void => clearInterval(timer),
  };
}
