/** Limits the number and bytes of an app's queued runs. The more runs of all apps are queued, the fewer an app may have. */
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { preparedRows, rows } from "../../data/database.js";
import { QUEUE_BYTES_SHARE, QUEUE_MIN_PER_APP } from "../../limits.js";

/**
 * Notification channel with the app's ID: a message means that a run of the app was queued and can start. An empty message stands for any
 * app.
 */
export const QUEUED_CHANNEL = "svc_queued";

/**
 * Delay in milliseconds after which a runner offers a waiting run of its own caller to all runners. Most runs have started by then. The
 * caller then follows the log, which also has the outcomes of other processes.
 */
export const ANNOUNCE_AFTER_MS = 100;
const ANNOUNCED_MAX = 1_000;

/**
 * Minimum interval between counts of the whole queue. A long queue is counted less often, so that counting takes at most a twentieth of the
 * time.
 */
const COUNT_EVERY_MS = 1_000;
const COUNTING_PART = 1 / 20;
const LONG_QUEUE = 10_000;
/** Limit below which the runs of the app are counted for each call, so that a small queue ends exactly at its limit. */
const COUNTED_EXACTLY = 1_000;

/** Reason why a trigger started no run. */
export const QUEUE_FULL = "too many runs wait already";

const SELECT_QUEUE_DEPTHS = `
  SELECT app_id AS "appId", count(*) AS runs, coalesce(sum(payload_bytes), 0)::float8 AS bytes, min(queued_at) AS "oldestAt",
         greatest(extract(epoch FROM now() - min(queued_at)) * 1000, 0)::float8 AS "oldestMs"
    FROM run WHERE state = 'queued' GROUP BY app_id`;
const OF_APP = `
  SELECT count(*) AS queued FROM (SELECT FROM run WHERE state = 'queued' AND app_id = $1 LIMIT $2::int) AS queued`;

/** Maximum number of queued runs in total and per app, and maximum bytes of all their payloads. */
export interface QueueBounds {
  max: number;
  maxPerApp: number;
  maxBytes: number;
}

/** Queued runs of one app. */
export interface QueueDepth {
  appId: number;
  runs: number;
  /** Bytes of their payloads. */
  bytes: number;
  oldestAt: Date;
  /** Wait of the oldest run at the time of the count. */
  oldestMs: number;
}

/**
 * Returns the maximum queued runs of one app when `queued` runs are queued in total: a tenth of the free capacity, at least
 * QUEUE_MIN_PER_APP. So ten apps that fill the queue leave capacity for all others.
 */
export function queueShare(queued: number, { max, maxPerApp }: QueueBounds): number {
  const tenthOfFree = Math.floor((max - queued) / 10);
  return Math.min(maxPerApp, Math.max(QUEUE_MIN_PER_APP, tenthOfFree));
}

export class QueueLimits {
  /** Apps whose runs were announced within this time. That notification also covers runs that are announced now. */
  private readonly announced = new LRUCache<number, true>({ max: ANNOUNCED_MAX, ttl: ANNOUNCE_AFTER_MS });
  private byApp = new Map<number, QueueDepth>();
  private readonly total = { runs: 0, bytes: 0 };
  private countedAt = Number.NEGATIVE_INFINITY;
  /** Minimum interval until the next count. */
  private intervalMs = 0;
  private counting: Promise<void> | null = null;

  constructor(
    private readonly db: DataSource,
    private readonly bounds: QueueBounds,
  ) {}

  private async count(): Promise<void> {
    const start = performance.now();
    const depthRows = await rows<QueueDepth>(this.db, SELECT_QUEUE_DEPTHS);
    this.byApp = new Map(depthRows.map((depth) => [depth.appId, depth]));
    this.total.runs = depthRows.reduce((sum, { runs }) => sum + runs, 0);
    this.total.bytes = depthRows.reduce((sum, { bytes }) => sum + bytes, 0);
    this.countedAt = performance.now();
    this.intervalMs = this.total.runs > LONG_QUEUE ? (this.countedAt - start) / COUNTING_PART : 0;
  }

  /** Counts again if the last count is older than `maxAgeMs` and the minimum interval. */
  private refresh(maxAgeMs = COUNT_EVERY_MS): Promise<void> {
    if (performance.now() - this.countedAt <= Math.max(maxAgeMs, this.intervalMs)) return Promise.resolve();
    this.counting ??= this.count().finally(() => {
      this.counting = null;
    });
    return this.counting;
  }

  private depthOf(appId: number): QueueDepth {
    return this.byApp.get(appId) ?? { appId, runs: 0, bytes: 0, oldestAt: new Date(), oldestMs: 0 };
  }

  private async isBelowLimit(appId: number, bytes: number): Promise<boolean> {
    const { maxBytes } = this.bounds;
    const appShare = queueShare(this.total.runs, this.bounds);
    const appDepth = this.depthOf(appId);
    const isTooLarge = this.total.bytes + bytes > maxBytes || appDepth.bytes + bytes > maxBytes * QUEUE_BYTES_SHARE;
    if (isTooLarge) return appDepth.runs < QUEUE_MIN_PER_APP;
    if (appShare > COUNTED_EXACTLY) return appDepth.runs < appShare;
    const [row] = await preparedRows<{ queued: number }>(this.db, "queue-of-app", OF_APP, [appId, appShare]);
    return row!.queued < appShare;
  }

  /** Returns the maximum per app and the queued runs of an app by the last count, for statements that count small queues exactly. */
  lastCount(): { share: number; queuedOf: (appId: number) => number } {
    this.refresh().catch(() => undefined);
    return { share: queueShare(this.total.runs, this.bounds), queuedOf: (appId) => this.depthOf(appId).runs };
  }

  /** Counts one more queued run with a payload of that size. Returns false if the app has reached its limit. */
  async takeBytes(appId: number, bytes: number): Promise<boolean> {
    await this.refresh();
    if (!(await this.isBelowLimit(appId, bytes))) return false;
    const appDepth = this.depthOf(appId);
    appDepth.runs += 1;
    appDepth.bytes += bytes;
    this.byApp.set(appId, appDepth);
    this.total.runs += 1;
    this.total.bytes += bytes;
    return true;
  }

  /** Undoes `take` if the run was not queued. */
  giveBack(appId: number, bytes: number): void {
    const appDepth = this.byApp.get(appId);
    // A count that was made in the meantime does not include the run.
    if (!appDepth || appDepth.runs === 0) return;
    appDepth.runs -= 1;
    appDepth.bytes -= bytes;
    this.total.runs -= 1;
    this.total.bytes -= bytes;
  }

  /** Notifies all runners of the app's runs that were queued ANNOUNCE_AFTER_MS ago without a notification. */
  async announce(appId: number): Promise<void> {
    if (this.announced.has(appId)) return;
    this.announced.set(appId, true);
    await this.db.query("SELECT pg_notify($1, $2)", [QUEUED_CHANNEL, String(appId)]);
  }

  /** Queued runs of each app, counted again unless counting takes long. */
  async depths(): Promise<QueueDepth[]> {
    // A count in progress may have missed runs that the caller knows of.
    if (this.counting) await this.counting.catch(() => undefined);
    await this.refresh(0);
    return [...this.byApp.values()];
  }
}
