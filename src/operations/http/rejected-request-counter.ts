/**
 * Counts requests to HTTP triggers that were rejected because of a wrong signature, token or password, by action and reason. Stores neither
 * the bodies of these requests nor a row for each request.
 */
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { TriggerAuthenticationError } from "./trigger-authenticator.js";

/** Number of rejected requests to the HTTP triggers of one action, for one reason. */
export interface RejectedRequestCount {
  status: string;
  reason: string;
  count: number;
  /** Time of the last rejected request, as ISO 8601 text. */
  lastAt: string;
  /** Network address that sent the last rejected request; null if the address is unknown. */
  lastAddress: string | null;
}

interface PendingRejections {
  actionId: number;
  status: string;
  reason: string;
  count: number;
  at: Date;
  address: string | null;
}

/** Milliseconds between two writes of all counts. A write updates one row per action and reason, for any number of requests. */
const FLUSH_MS = 1_000;
/** Maximum number of pairs of action and reason whose counts are in memory. Requests of further pairs are not counted. */
const PENDING_REJECTIONS_MAX = 10_000;

const UPSERT_REJECTIONS = `
  INSERT INTO http_refusal AS known (action_id, status, reason, refused, last_at, last_address)
  SELECT action_id, status, reason, count, at, address
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[])
         AS counted (action_id, status, reason, count, at, address)
   WHERE EXISTS (SELECT FROM action WHERE action.id = counted.action_id)
   ORDER BY action_id, status, reason
  ON CONFLICT (action_id, status, reason) DO UPDATE
    SET refused = known.refused + excluded.refused, last_at = excluded.last_at, last_address = excluded.last_address`;

const LIST_REJECTIONS = `
  SELECT status, reason, refused AS count, last_at AS "lastAt", last_address AS "lastAddress"
    FROM http_refusal JOIN action AS draft ON draft.id = http_refusal.action_id
   WHERE draft.app_id = $1 AND draft.id = (SELECT coalesce(master_id, id) FROM action WHERE id = $2) ORDER BY last_at DESC`;

export class RejectedRequestCounter {
  private pending = new Map<string, PendingRejections>();
  private timer: NodeJS.Timeout | null = null;
  /** Resolves when the last write has ended. Writes run one after the other, so that a list contains all earlier counts. */
  private lastWrite: Promise<void> = Promise.resolve();

  constructor(private readonly options: { db: Db; log: Logger }) {}

  private async writePending(): Promise<void> {
    const { db } = this.options;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (this.pending.size === 0 || !db.isInitialized) return;
    const batch = this.pending;
    this.pending = new Map();
    const rejections = [...batch.values()];
    const listColumn = <K extends keyof PendingRejections>(name: K) => rejections.map((rejection) => rejection[name]);
    const values = [
      listColumn("actionId"),
      listColumn("status"),
      listColumn("reason"),
      listColumn("count"),
      listColumn("at"),
      listColumn("address"),
    ];
    try {
      await rows(db, UPSERT_REJECTIONS, values);
    } catch (error) {
      this.restore(batch);
      throw error;
    }
  }

  /**
   * Puts back a batch whose write failed, so that the next write stores it. If only the response of the database was lost, the batch counts
   * twice. If PENDING_REJECTIONS_MAX is reached, discards the counts of further pairs of action and reason.
   */
  private restore(batch: ReadonlyMap<string, PendingRejections>): void {
    for (const [key, rejections] of batch) {
      const newerRejections = this.pending.get(key);
      if (newerRejections) newerRejections.count += rejections.count;
      else if (this.pending.size < PENDING_REJECTIONS_MAX) this.pending.set(key, rejections);
    }
    this.scheduleWrite();
  }

  private storePending(): Promise<void> {
    const written = this.lastWrite.then(() => this.writePending());
    this.lastWrite = written.catch(() => undefined);
    return written;
  }

  private scheduleWrite(): void {
    this.timer ??= setTimeout(() => {
      const flushed = this.storePending().catch((error: unknown) =>
        this.options.log.warn({ err: error }, "rejected requests to HTTP triggers could not be counted; trying again"),
      );
      runInBackground(flushed);
    }, FLUSH_MS).unref();
  }

  /** Counts a rejected request in memory. `actionId` is the draft's ID, also for the live version. */
  count(actionId: number, { status, reason }: TriggerAuthenticationError, address: string | undefined): void {
    const key = `${actionId} ${status} ${reason}`;
    const pendingRejection = this.pending.get(key);
    if (!pendingRejection && this.pending.size >= PENDING_REJECTIONS_MAX) return;
    const count = (pendingRejection?.count ?? 0) + 1;
    this.pending.set(key, { actionId, status, reason, count, at: new Date(), address: address ?? null });
    this.scheduleWrite();
  }

  /** Writes the counts in memory to the database. Call this function at a stop, after the last request and before the database closes. */
  stop(): Promise<void> {
    return this.storePending();
  }

  /**
   * Writes the counts in memory to the database, and lists all counts, the latest first.
   * @param actionId ID of the draft or of its live version
   * @throws ACTION_NOT_FOUND
   */
  async list(appId: number, actionId: number): Promise<RejectedRequestCount[]> {
    const { db } = this.options;
    const actionRows = await rows(db, "SELECT FROM action WHERE app_id = $1 AND id = $2", [appId, actionId]);
    if (actionRows.length === 0) throw new ActionError("ACTION_NOT_FOUND");
    await this.storePending();
    const rejectionRows = await rows<RejectedRequestCount & { lastAt: Date }>(db, LIST_REJECTIONS, [appId, actionId]);
    return rejectionRows.map((row) => ({ ...row, lastAt: row.lastAt.toISOString() }));
  }
}
