/**
 * Whether another run may wait: how many of one app do and with how many bytes, the fewer the more wait in all. Knows numbers of rows,
 * not whose turn it is.
 */
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { preparedRows, rows } from "../../data/database.js";
import { QUEUE_BYTES_SHARE, QUEUE_MIN_PER_APP } from "../../limits.js";

/** Channel of the notice, with the app's id, that a run of the app was queued and can start. An empty notice stands for any app. */
export const QUEUED_CHANNEL = "svc_queued";

/**
 * A runner starts most runs that its own callers wait for within this time. It announces the others to all runners then, and their callers
 * also follow the log, in which the outcome of another process appears.
 */
export const ANNOUNCE_AFTER_MS = 100;
const ANNOUNCED_MAX = 1_000;

/** All that wait are counted once in so long; where they are many, seldom enough that counting takes but this part of the time. */
const COUNT_EVERY_MS = 1_000;
const COUNTING_PART = 1 / 20;
const MANY = 10_000;
/** Fewer runs of an app are counted one by one, so that a small queue is full at its number and not about there. */
const COUNTED_EXACTLY = 1_000;

/** Why a trigger started no run. */
export const QUEUE_FULL = "too many runs wait already";

const DEPTHS = `
  SELECT app_id AS "appId", count(*) AS runs, coalesce(sum(payload_bytes), 0)::float8 AS bytes, min(queued_at) AS "oldestAt",
         greatest(extract(epoch FROM now() - min(queued_at)) * 1000, 0)::float8 AS "oldestMs"
    FROM run WHERE state = 'queued' GROUP BY app_id`;
const OF_APP = `
  SELECT count(*) AS waiting FROM (SELECT FROM run WHERE state = 'queued' AND app_id = $1 LIMIT $2::int) AS queued`;

/** What may wait: runs in all and of one app, and the bytes of all their payloads. */
export interface QueueBounds {
  max: number;
  maxPerApp: number;
  maxBytes: number;
}

/** What waits of one app. */
export interface QueueDepth {
  appId: number;
  runs: number;
  /** Of their payloads. */
  bytes: number;
  oldestAt: Date;
  /** How long that one had waited when they were counted. */
  oldestMs: number;
}

/**
 * How many runs of one app may wait when so many wait in all. Ten apps that fill the queue leave room for any other: a tenth of what is
 * free, and never less than QUEUE_MIN_PER_APP.
 */
export function queueShare(waiting: number, { max, maxPerApp }: QueueBounds): number {
  const tenth = Math.floor((max - waiting) / 10);
  return Math.min(maxPerApp, Math.max(QUEUE_MIN_PER_APP, tenth));
}

export type QueueRoom = ReturnType<typeof createQueueRoom>;

export function createQueueRoom(db: DataSource, bounds: QueueBounds) {
  /** Apps that were announced within this time: such a notice is for all runs that are announced now. */
  const announced = new LRUCache<number, true>({ max: ANNOUNCED_MAX, ttl: ANNOUNCE_AFTER_MS });
  let known = new Map<number, QueueDepth>();
  const all = { runs: 0, bytes: 0 };
  let countedAt = Number.NEGATIVE_INFINITY;
  let restMs = 0;
  let counting: Promise<void> | null = null;

  async function recount(): Promise<void> {
    const start = performance.now();
    const found = await rows<QueueDepth>(db, DEPTHS);
    known = new Map(found.map((depth) => [depth.appId, depth]));
    all.runs = found.reduce((sum, { runs }) => sum + runs, 0);
    all.bytes = found.reduce((sum, { bytes }) => sum + bytes, 0);
    countedAt = performance.now();
    restMs = all.runs > MANY ? (countedAt - start) / COUNTING_PART : 0;
  }

  /** Counts again if the last count is older than that, and than the minimum interval of counts. */
  function refreshed(olderMs = COUNT_EVERY_MS): Promise<void> {
    if (performance.now() - countedAt <= Math.max(olderMs, restMs)) return Promise.resolve();
    counting ??= recount().finally(() => {
      counting = null;
    });
    return counting;
  }

  const depthOf = (appId: number): QueueDepth =>
    known.get(appId) ?? { appId, runs: 0, bytes: 0, oldestAt: new Date(), oldestMs: 0 };

  async function hasRoom(appId: number, bytes: number): Promise<boolean> {
    const most = queueShare(all.runs, bounds);
    const depth = depthOf(appId);
    if (all.bytes + bytes > bounds.maxBytes) return depth.runs < QUEUE_MIN_PER_APP;
    if (depth.bytes + bytes > bounds.maxBytes * QUEUE_BYTES_SHARE) return depth.runs < QUEUE_MIN_PER_APP;
    if (most > COUNTED_EXACTLY) return depth.runs < most;
    const values = [appId, most];
    return (await preparedRows<{ waiting: number }>(db, "queue-of-app", OF_APP, values))[0]!.waiting < most;
  }

  return {
    /** By the last count, for statements that count exactly what is little: how many runs of one app may wait, and how many do. */
    shareKnown(): { share: number; waitingOf: (appId: number) => number } {
      refreshed().catch(() => undefined);
      return { share: queueShare(all.runs, bounds), waitingOf: (appId) => depthOf(appId).runs };
    },

    /** Counts one more queued run of the app, with a payload of that many bytes. False if the app has queued as much as it may. */
    async take(appId: number, bytes: number): Promise<boolean> {
      await refreshed();
      if (!(await hasRoom(appId, bytes))) return false;
      const depth = depthOf(appId);
      depth.runs += 1;
      depth.bytes += bytes;
      known.set(appId, depth);
      all.runs += 1;
      all.bytes += bytes;
      return true;
    },

    /** Notifies all runners of the app's runs that were queued ANNOUNCE_AFTER_MS ago without a notice. */
    async announce(appId: number): Promise<void> {
      if (announced.has(appId)) return;
      announced.set(appId, true);
      await db.query("SELECT pg_notify($1, $2)", [QUEUED_CHANNEL, String(appId)]);
    },

    /** Queued runs of each app, counted again, but rarely if counting takes long. */
    async depths(): Promise<QueueDepth[]> {
      // One that is under way may have begun before what its asker knows of was written.
      if (counting) await counting.catch(() => undefined);
      await refreshed(0);
      return [...known.values()];
    },
  };
}
