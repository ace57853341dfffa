/** Whether another run may wait: how many of one app do, the fewer the more wait in all. Knows numbers of rows, not whose turn it is. */
import type { DataSource } from "typeorm";
import { preparedRows } from "../../data/database.js";
import { QUEUE_MAX, QUEUE_MAX_PER_APP, QUEUE_MIN_PER_APP } from "../../limits.js";

/** All that wait are counted once in so long; in between each process adds what it queued itself. */
const COUNT_EVERY_MS = 1_000;

/** Why a trigger started no run. */
export const QUEUE_FULL = "too many runs wait already";

/* Counts stop at the bound: beyond it the number does not matter. */
const ALL = `SELECT count(*) AS waiting FROM (SELECT FROM run WHERE state = 'queued' LIMIT ${QUEUE_MAX}) AS queued`;
const OF_APP = `
  SELECT count(*) AS waiting FROM (SELECT FROM run WHERE state = 'queued' AND app_id = $1 LIMIT $2::int) AS queued`;

/**
 * How many runs of one app may wait when so many wait in all. Ten apps that fill the queue leave room for any other: a tenth of what is
 * free, and never less than QUEUE_MIN_PER_APP.
 */
export function queueShare(waiting: number): number {
  const tenth = Math.floor((QUEUE_MAX - waiting) / 10);
  return Math.min(QUEUE_MAX_PER_APP, Math.max(QUEUE_MIN_PER_APP, tenth));
}

export type QueueRoom = ReturnType<typeof createQueueRoom>;

export function createQueueRoom(db: DataSource) {
  let waiting = 0;
  let countedAt = Number.NEGATIVE_INFINITY;
  let counting: Promise<void> | null = null;

  async function count(name: string, text: string, values: unknown[] = []): Promise<number> {
    return (await preparedRows<{ waiting: number }>(db, name, text, values))[0]!.waiting;
  }

  async function recount(): Promise<void> {
    waiting = await count("queue-all", ALL);
    countedAt = performance.now();
  }

  /** Counts anew where the last count is old. */
  function refreshed(): Promise<void> {
    if (performance.now() - countedAt <= COUNT_EVERY_MS) return Promise.resolve();
    counting ??= recount().finally(() => {
      counting = null;
    });
    return counting;
  }

  return {
    /** How many runs of one app may wait, by the last count: never waits, since it is asked within transactions. */
    shareKnown(): number {
      refreshed().catch(() => undefined);
      return queueShare(waiting);
    },

    /** Takes room for a run of the app. @returns false when as many of its runs wait as may */
    async take(appId: number): Promise<boolean> {
      await refreshed();
      const most = queueShare(waiting);
      if ((await count("queue-of-app", OF_APP, [appId, most])) >= most) return false;
      waiting += 1;
      return true;
    },
  };
}
