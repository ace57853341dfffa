/**
 * Stores which blobs the media of an app use: reserves the app's quota before an upload starts, and finds blobs that no
 * file uses. A blob is the content of one file (or of its thumbnail) in the media store.
 */
import type { Logger } from "pino";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MEDIA_FILE_COUNTED_MIN_BYTES } from "../../limits.js";

/** Lease of a blob during its upload. If the process crashes, another one can delete the blob after this time. */
const LEASE_SECONDS = 60;
/** Interval at which a process renews the leases of the blobs that it is uploading. */
const RENEW_INTERVAL_MS = 15_000;

/**
 * Maximum number of database writes for uploads that this process runs at the same time. Writes of one app block each
 * other, because they lock the app's row of used bytes. Without this limit, hundreds of uploads would occupy all
 * database connections of the process. Uploads do not take part in the turns of `runAppChangeInTurn`, because a waiting
 * picture would occupy a slot for picture processing, and all apps share these slots.
 */
const CONCURRENT_WRITES_MAX = 2;
/** Maximum number of database writes for uploads of one app that this process runs at the same time. */
const CONCURRENT_WRITES_PER_APP = 1;

const NEW_LEASE_END_SQL = `now() + ${LEASE_SECONDS} * interval '1 second'`;

/**
 * Reserves quota for a new or growing blob. $1 is the app's ID, $2 the number of bytes, $3 the app's quota in bytes (null: unlimited), $4
 * the blob's key. Returns no row if the app would exceed its quota. Concurrent reservations for the same app wait for each other.
 */
const RESERVE_BLOB = `
  WITH taken AS (
    INSERT INTO media_usage AS kept (app_id, bytes) SELECT $1, $2::bigint WHERE $3::bigint IS NULL OR $2::bigint <= $3
    ON CONFLICT (app_id) DO UPDATE SET bytes = kept.bytes + excluded.bytes
      WHERE $3::bigint IS NULL OR kept.bytes + excluded.bytes <= $3
    RETURNING app_id)
  INSERT INTO media_blob AS blob (key, app_id, bytes, held_until) SELECT $4, app_id, $2, ${NEW_LEASE_END_SQL} FROM taken
  ON CONFLICT (key) DO UPDATE SET bytes = blob.bytes + excluded.bytes
  RETURNING key`;

/** Marks a blob $1 as used by a file, with its final size $2. Returns no row if it was deleted, because its lease had expired. */
const MARK_BLOB_USED = `
  WITH before AS (SELECT key, app_id, bytes FROM media_blob WHERE key = $1 AND held_until <> '-infinity' FOR NO KEY UPDATE),
  settled AS (UPDATE media_blob SET bytes = $2, held_until = NULL FROM before WHERE media_blob.key = before.key RETURNING before.app_id),
  counted AS (UPDATE media_usage SET bytes = media_usage.bytes + $2 - before.bytes FROM before WHERE media_usage.app_id = before.app_id)
  SELECT app_id FROM settled`;

/** Marks the blob $1 as unused, so that no file can use it. Returns no row if a file uses it: then it must not be deleted. */
const MARK_BLOB_UNUSED =
  "UPDATE media_blob SET held_until = '-infinity' WHERE key = $1 AND held_until IS NOT NULL RETURNING key";

/** Deletes the row of a blob and subtracts the blob's bytes from the app's used bytes. $1 is the blob's key. */
const DELETE_BLOB = `
  WITH gone AS (DELETE FROM media_blob WHERE key = $1 AND held_until = '-infinity' RETURNING app_id, bytes)
  UPDATE media_usage SET bytes = media_usage.bytes - gone.bytes FROM gone WHERE media_usage.app_id = gone.app_id`;

interface MediaBlobsOptions {
  db: Db;
  /** Maximum bytes of all media of one app; 0 means unlimited. */
  quotaBytes: number;
  log: Logger;
}

/** Counts and finds blobs. */
export class MediaBlobs {
  private readonly leasedKeys = new Set<string>();
  private readonly writeSlots = new FairSemaphore(CONCURRENT_WRITES_MAX, CONCURRENT_WRITES_PER_APP);
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: MediaBlobsOptions) {}

  private renewLeases(): void {
    const { db, log } = this.options;
    if (this.leasedKeys.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    const sql = `UPDATE media_blob SET held_until = ${NEW_LEASE_END_SQL} WHERE key = ANY ($1) AND held_until <> '-infinity'`;
    db.query(sql, [[...this.leasedKeys]]).catch((error: unknown) =>
      log.warn(
        { err: error },
        "renewing the leases of running uploads failed; if this continues, the uploads are lost",
      ),
    );
  }

  private startRenewing(key: string): void {
    this.leasedKeys.add(key);
    this.timer ??= setInterval(() => this.renewLeases(), RENEW_INTERVAL_MS).unref();
  }

  /** Runs a database write for an upload as soon as a slot is free. Slots go to the waiting apps in turn. */
  private async writeInTurn(appId: number, sql: string, values: unknown[]): Promise<unknown[]> {
    const freeSlot = await this.writeSlots.enter(appId);
    return rows(this.options.db, sql, values).finally(freeSlot);
  }

  /** Returns how many bytes of the app's quota a blob of this size uses. Small blobs count as MEDIA_FILE_COUNTED_MIN_BYTES. */
  quotaBytesOf(bytes: number) {
    return Math.max(bytes, MEDIA_FILE_COUNTED_MIN_BYTES);
  }

  /** Reserves quota for a new or growing blob. @throws ActionError PAYLOAD_TOO_LARGE if the app would exceed its quota */
  async reserve(appId: number, key: string, bytes: number): Promise<void> {
    const { quotaBytes } = this.options;
    const quotaOrNull = quotaBytes === 0 ? null : quotaBytes;
    this.startRenewing(key);
    const [reserved] = await this.writeInTurn(appId, RESERVE_BLOB, [appId, bytes, quotaOrNull, key]);
    if (reserved) return;
    const message = `the media of one app can use at most ${quotaBytes / 2 ** 20} MB, and this file exceeds the remaining quota; delete files first`;
    throw new ActionError("PAYLOAD_TOO_LARGE", message);
  }

  /**
   * Marks a blob as used by a file. Call this function in the transaction that stores the file.
   * @throws ActionError OVERLOADED if the lease of the blob has expired
   */
  async markUsed(executor: SqlClient, key: string, bytes: number): Promise<void> {
    const settled = await rows(executor, MARK_BLOB_USED, [key, Math.max(bytes, MEDIA_FILE_COUNTED_MIN_BYTES)]);
    if (settled.length === 0)
      throw new ActionError(
        "OVERLOADED",
        "the service took too long to store this upload, and discarded it; send the file again",
        { retryAfter: 1 },
      );
  }

  /** Stops renewing the lease of a blob, because its upload has ended. */
  stopRenewing(key: string): void {
    this.leasedKeys.delete(key);
  }

  /** Marks blobs as unused. Call this function in the transaction that deletes the files that used them. */
  async markUnused(executor: SqlClient, keys: readonly string[]): Promise<void> {
    await rows(executor, "UPDATE media_blob SET held_until = '-infinity' WHERE key = ANY ($1)", [keys]);
  }

  /**
   * Calls `remove` for a blob and deletes its row, unless a file uses the blob. A file may use the blob even if the upload failed: the
   * database may have committed the transaction although its response was lost.
   * @param appId app for which the database write waits for its turn; the sweep omits it and removes one blob at a time
   */
  async removeUnlessUsed(key: string, remove: (key: string) => Promise<void>, appId = 0): Promise<void> {
    this.leasedKeys.delete(key);
    const abandonedBlobs = await this.writeInTurn(appId, MARK_BLOB_UNUSED, [key]);
    if (abandonedBlobs.length === 0) return;
    await remove(key);
    await this.writeInTurn(appId, DELETE_BLOB, [key]);
  }

  /** Returns the keys of up to `limit` unused blobs, including blobs whose upload lease has expired. */
  async unusedKeys(limit: number): Promise<string[]> {
    const blobRows = await rows<{ key: string }>(
      this.options.db,
      "SELECT key FROM media_blob WHERE held_until < now() ORDER BY held_until LIMIT $1",
      [limit],
    );
    return blobRows.map(({ key }) => key);
  }

  /** Returns the blob keys in `keys` that have no row in the database. */
  async keysWithoutRow(keys: readonly string[]): Promise<string[]> {
    const blobRows = await rows<{ key: string }>(
      this.options.db,
      `SELECT key FROM unnest($1::text[]) AS stored (key)
          WHERE NOT EXISTS (SELECT FROM media_blob WHERE media_blob.key = stored.key)`,
      [keys],
    );
    return blobRows.map(({ key }) => key);
  }

  /** Returns how many bytes of the app's quota its media use. */
  async usage(appId: number): Promise<number> {
    const [blobRows] = await rows<{ bytes: number }>(
      this.options.db,
      "SELECT bytes FROM media_usage WHERE app_id = $1",
      [appId],
    );
    return blobRows?.bytes ?? 0;
  }

  stop(): void {
    clearInterval(this.timer);
  }
}
