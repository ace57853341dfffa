/**
 * Counts the bytes of an app's media against the app's quota, and finds blobs that no file uses. A blob is the content of one file (or of
 * its thumbnail) in the media store.
 */
import type { Logger } from "pino";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MEDIA_QUOTA_MIN_BYTES_PER_FILE } from "../../limits.js";

/** Lease of a blob during its upload. After the lease has expired (the process has crashed), another process can delete the blob. */
const LEASE_SECONDS = 60;
/** Interval at which a process renews the leases of the blobs that it is uploading. */
const RENEW_INTERVAL_MS = 15_000;

/** Maximum concurrent database writes for uploads in this process. Waiting writes could otherwise occupy all database connections. */
const CONCURRENT_WRITES_MAX = 2;
/**
 * Maximum concurrent writes of one app. All its writes lock the same row (the app's used bytes), so they would only wait for one another.
 */
const CONCURRENT_WRITES_PER_APP = 1;

const NEW_LEASE_END_SQL = `now() + ${LEASE_SECONDS} * interval '1 second'`;

/** Reserves $2 bytes for the blob $4 of the app $1. Returns no row if the app would exceed its quota of $3 bytes (null: unlimited). */
const RESERVE_BLOB = `
  WITH taken AS (
    INSERT INTO media_usage AS kept (app_id, bytes) SELECT $1, $2::bigint WHERE $3::bigint IS NULL OR $2::bigint <= $3
    ON CONFLICT (app_id) DO UPDATE SET bytes = kept.bytes + excluded.bytes
      WHERE $3::bigint IS NULL OR kept.bytes + excluded.bytes <= $3
    RETURNING app_id)
  INSERT INTO media_blob AS blob (key, app_id, bytes, held_until) SELECT $4, app_id, $2, ${NEW_LEASE_END_SQL} FROM taken
  ON CONFLICT (key) DO UPDATE SET bytes = blob.bytes + excluded.bytes
  RETURNING key`;

/** Marks the blob $1 as used, with its final size $2. Returns no row if the blob was marked as unused after its lease had expired. */
const MARK_BLOB_USED = `
  WITH before AS (SELECT key, app_id, bytes FROM media_blob WHERE key = $1 AND held_until <> '-infinity' FOR NO KEY UPDATE),
  settled AS (UPDATE media_blob SET bytes = $2, held_until = NULL FROM before WHERE media_blob.key = before.key RETURNING before.app_id),
  counted AS (UPDATE media_usage SET bytes = media_usage.bytes + $2 - before.bytes FROM before WHERE media_usage.app_id = before.app_id)
  SELECT app_id FROM settled`;

/** Marks the blob $1 as unused, so that no file can use it any more. Returns no row if a file already uses the blob. */
const MARK_BLOB_UNUSED =
  "UPDATE media_blob SET held_until = '-infinity' WHERE key = $1 AND held_until IS NOT NULL RETURNING key";

/** Deletes the row of the unused blob $1, and subtracts the blob's bytes from the app's used bytes. */
const DELETE_BLOB = `
  WITH gone AS (DELETE FROM media_blob WHERE key = $1 AND held_until = '-infinity' RETURNING app_id, bytes)
  UPDATE media_usage SET bytes = media_usage.bytes - gone.bytes FROM gone WHERE media_usage.app_id = gone.app_id`;

interface MediaBlobsOptions {
  db: Db;
  /** Maximum bytes of all media of one app; 0 means unlimited. */
  quotaBytes: number;
  log: Logger;
}

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
      log.warn({ err: error }, "renewing the leases of running uploads failed; if this continues, the uploads fail"),
    );
  }

  private startRenewing(key: string): void {
    this.leasedKeys.add(key);
    this.timer ??= setInterval(() => this.renewLeases(), RENEW_INTERVAL_MS).unref();
  }

  /** Runs a database write as soon as a slot is free. Waiting apps take turns. */
  private async writeInSlot(appId: number, sql: string, values: unknown[]): Promise<unknown[]> {
    const releaseSlot = await this.writeSlots.enter(appId);
    return rows(this.options.db, sql, values).finally(releaseSlot);
  }

  /** Returns how many bytes of the app's quota a blob uses: its own bytes, but at least MEDIA_QUOTA_MIN_BYTES_PER_FILE. */
  computeQuotaBytes(bytes: number) {
    return Math.max(bytes, MEDIA_QUOTA_MIN_BYTES_PER_FILE);
  }

  /** Reserves quota for a new or growing blob. @throws ActionError PAYLOAD_TOO_LARGE if the app would exceed its quota */
  async reserve(appId: number, key: string, bytes: number): Promise<void> {
    const { quotaBytes } = this.options;
    const quotaOrNull = quotaBytes === 0 ? null : quotaBytes;
    this.startRenewing(key);
    const [reserved] = await this.writeInSlot(appId, RESERVE_BLOB, [appId, bytes, quotaOrNull, key]);
    if (reserved) return;
    const message = `the media of one app can use at most ${quotaBytes / 2 ** 20} MB, and this file exceeds the remaining quota; delete files first`;
    throw new ActionError("PAYLOAD_TOO_LARGE", message);
  }

  /**
   * Marks a blob as used by a file. Call this function in the transaction that stores the file.
   * @throws ActionError OVERLOADED if the blob was marked as unused, because its lease had expired
   */
  async markUsed(executor: SqlClient, key: string, bytes: number): Promise<void> {
    const markedRows = await rows(executor, MARK_BLOB_USED, [key, Math.max(bytes, MEDIA_QUOTA_MIN_BYTES_PER_FILE)]);
    if (markedRows.length === 0)
      throw new ActionError(
        "OVERLOADED",
        "the service took too long to store this upload, and discarded it; send the file again",
        { retryAfter: 1 },
      );
  }

  stopRenewing(key: string): void {
    this.leasedKeys.delete(key);
  }

  /** Marks blobs as unused. Call this function in the transaction that deletes the files of these blobs. */
  async markUnused(executor: SqlClient, keys: readonly string[]): Promise<void> {
    await rows(executor, "UPDATE media_blob SET held_until = '-infinity' WHERE key = ANY ($1)", [keys]);
  }

  /**
   * Deletes a blob with `remove`, unless a file uses the blob. After a failed upload, a file can use the blob, because the commit may have
   * succeeded although its response was lost.
   * @param appId the database writes wait for a slot of this app (`writeInSlot`); 0 for the periodic cleanup
   */
  async removeUnlessUsed(key: string, remove: (key: string) => Promise<void>, appId = 0): Promise<void> {
    this.leasedKeys.delete(key);
    const abandonedBlobs = await this.writeInSlot(appId, MARK_BLOB_UNUSED, [key]);
    if (abandonedBlobs.length === 0) return;
    await remove(key);
    await this.writeInSlot(appId, DELETE_BLOB, [key]);
  }

  /** Returns the keys of up to `limit` blobs that are marked as unused, or whose upload lease has expired. */
  async listUnusedKeys(limit: number): Promise<string[]> {
    const blobRows = await rows<{ key: string }>(
      this.options.db,
      "SELECT key FROM media_blob WHERE held_until < now() ORDER BY held_until LIMIT $1",
      [limit],
    );
    return blobRows.map(({ key }) => key);
  }

  /** Returns the keys without a row in the database. */
  async listKeysWithoutRow(keys: readonly string[]): Promise<string[]> {
    const blobRows = await rows<{ key: string }>(
      this.options.db,
      `SELECT key FROM unnest($1::text[]) AS stored (key)
          WHERE NOT EXISTS (SELECT FROM media_blob WHERE media_blob.key = stored.key)`,
      [keys],
    );
    return blobRows.map(({ key }) => key);
  }

  /** Returns how many bytes of the app's quota are used. */
  async readUsedBytes(appId: number): Promise<number> {
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
