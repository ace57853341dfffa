/** Limits the number and bytes of each app's queued runs. The more runs of all apps are queued, the lower is the limit of each app. */
import { type Db, queryPreparedRows, rows } from "../../data/database.js";
import { QUEUE_BYTES_APP_SHARE, QUEUED_RUNS_PER_APP_RESERVED } from "../../limits.js";

/** PostgreSQL channel. A message contains the ID of an app with a queued run that can start. An empty message stands for any app. */
export const QUEUED_RUN_CHANNEL = "svc_queued";

/** SQL condition: a process other than `processId` (SQL) executes runs. */
export const createOtherRunnerExistsSql = (processId: string): string =>
  `EXISTS (SELECT FROM instance WHERE id <> ${processId} AND 'runner' = ANY (roles) AND lease_until >= now())`;

const COUNT_INTERVAL_MS = 1_000;
/** Maximum share of its time in which a process counts a long queue. After a count of one second, it pauses for at least 20 seconds. */
const COUNTING_SHARE_MAX = 1 / 20;
const LONG_QUEUE_RUNS = 10_000;
/** If an app's limit is at most this number, the service counts the app's queued runs again before it queues a run. */
const EXACTLY_COUNTED_LIMIT_MAX = 1_000;

/** Reason of a skipped run that a trigger could not queue. */
export const QUEUE_FULL_REASON = "too many runs wait already";

const SELECT_QUEUE_DEPTHS = `
  SELECT app_id AS "appId", count(*) AS runs, coalesce(sum(payload_bytes), 0)::float8 AS bytes, min(queued_at) AS "oldestAt",
         greatest(extract(epoch FROM now() - min(queued_at)) * 1000, 0)::float8 AS "oldestMs"
    FROM run WHERE state = 'queued' GROUP BY app_id`;
const COUNT_QUEUED_OF_APP = `
  SELECT count(*) AS queued FROM (SELECT FROM run WHERE state = 'queued' AND app_id = $1 LIMIT $2::int) AS queued`;

/** Configured limits of the queue of runs. */
export interface RunQueueBounds {
  maxRuns: number;
  maxRunsPerApp: number;
  /** Maximum total bytes of the payloads of all queued runs. */
  maxPayloadBytes: number;
}

export interface AppQueueDepth {
  appId: number;
  runs: number;
  bytes: number;
  oldestAt: Date;
  oldestMs: number;
}

/**
 * Returns the maximum queued runs of one app: a tenth of the free capacity, but at least QUEUED_RUNS_PER_APP_RESERVED and at most
 * `maxRunsPerApp`.
 * @param queued number of queued runs of all apps
 */
export function computeAppQueueLimit(queued: number, { maxRuns, maxRunsPerApp }: RunQueueBounds): number {
  const tenthOfFree = Math.floor((maxRuns - queued) / 10);
  return Math.min(maxRunsPerApp, Math.max(QUEUED_RUNS_PER_APP_RESERVED, tenthOfFree));
}

export class QueueLimits {
  private depthsByApp = new Map<number, AppQueueDepth>();
  private readonly total = { runs: 0, bytes: 0 };
  private countedAt = Number.NEGATIVE_INFINITY;
  private intervalMs = 0;
  private countInProgress: Promise<void> | null = null;

  constructor(
    private readonly db: Db,
    private readonly bounds: RunQueueBounds,
  ) {}

  private async countQueue(): Promise<void> {
    const start = performance.now();
    const depthRows = await rows<AppQueueDepth>(this.db, SELECT_QUEUE_DEPTHS);
    this.depthsByApp = new Map(depthRows.map((depth) => [depth.appId, depth]));
    this.total.runs = depthRows.reduce((sum, { runs }) => sum + runs, 0);
    this.total.bytes = depthRows.reduce((sum, { bytes }) => sum + bytes, 0);
    this.countedAt = performance.now();
    this.intervalMs = this.total.runs > LONG_QUEUE_RUNS ? (this.countedAt - start) / COUNTING_SHARE_MAX : 0;
  }

  /** Counts the queue again if the last count is older than `maxAgeMs` and older than `intervalMs`. */
  private recountIfOld(maxAgeMs = COUNT_INTERVAL_MS): Promise<void> {
    if (performance.now() - this.countedAt <= Math.max(maxAgeMs, this.intervalMs)) return Promise.resolve();
    this.countInProgress ??= this.countQueue().finally(() => {
      this.countInProgress = null;
    });
    return this.countInProgress;
  }

  private getDepth(appId: number): AppQueueDepth {
    return this.depthsByApp.get(appId) ?? { appId, runs: 0, bytes: 0, oldestAt: new Date(), oldestMs: 0 };
  }

  private async isBelowLimit(appId: number, bytes: number): Promise<boolean> {
    const { maxPayloadBytes } = this.bounds;
    const appLimit = computeAppQueueLimit(this.total.runs, this.bounds);
    const appDepth = this.getDepth(appId);
    const isTooLarge =
      this.total.bytes + bytes > maxPayloadBytes || appDepth.bytes + bytes > maxPayloadBytes * QUEUE_BYTES_APP_SHARE;
    if (isTooLarge) return appDepth.runs < QUEUED_RUNS_PER_APP_RESERVED;
    if (appLimit > EXACTLY_COUNTED_LIMIT_MAX) return appDepth.runs < appLimit;
    const [row] = await queryPreparedRows<{ queued: number }>(this.db, "queue-of-app", COUNT_QUEUED_OF_APP, [
      appId,
      appLimit,
    ]);
    return row!.queued < appLimit;
  }

  /** Returns the limit per app (`limitPerApp`) and the numbers of queued runs, both as of the last count. Does not wait for a new count. */
  getLastCount(): { limitPerApp: number; getQueuedCount: (appId: number) => number } {
    this.recountIfOld().catch(() => undefined);
    return {
      limitPerApp: computeAppQueueLimit(this.total.runs, this.bounds),
      getQueuedCount: (appId) => this.getDepth(appId).runs,
    };
  }

  /** Reserves queue capacity for a run with a payload of `bytes` bytes. Returns false if the run would exceed a limit. */
  async reserveCapacity(appId: number, bytes: number): Promise<boolean> {
    await this.recountIfOld();
    if (!(await this.isBelowLimit(appId, bytes))) return false;
    const appDepth = this.getDepth(appId);
    appDepth.runs += 1;
    appDepth.bytes += bytes;
    this.depthsByApp.set(appId, appDepth);
    this.total.runs += 1;
    this.total.bytes += bytes;
    return true;
  }

  /** Frees the capacity that `reserveCapacity` reserved for a run that was not queued after all. */
  releaseCapacity(appId: number, bytes: number): void {
    const appDepth = this.depthsByApp.get(appId);
    // If the queue was counted again after the reservation, the count does not include the run, and may be 0.
    if (!appDepth || appDepth.runs === 0) return;
    appDepth.runs -= 1;
    appDepth.bytes -= bytes;
    this.total.runs -= 1;
    this.total.bytes -= bytes;
  }

  /** Returns the number, bytes and age of queued runs for each app that has any. If the queue is long, can use a recent count. */
  async readDepths(): Promise<AppQueueDepth[]> {
    // Does not use the result of a count in progress, because it may miss runs that were queued just before this call.
    if (this.countInProgress) await this.countInProgress.catch(() => undefined);
    await this.recountIfOld(0);
    return [...this.depthsByApp.values()];
  }
}
