/**
 * Queue of expensive tasks that divides the main thread fairly between callers, who take turns. After a task, its caller must pause for a
 * multiple of the task's duration.
 */
import { createRateLimitError } from "../errors.js";

/**
 * Pause of a caller (key) after its task, as a multiple of the task's duration, but at most PAUSE_MAX_MS. With 9, a caller gets a tenth of
 * the thread.
 */
const SENDER_PAUSE_FACTOR = 9;
/** Pause of the whole queue after each task, as a multiple of the task's duration. With 1, half of the thread stays free for other work. */
const SHARED_PAUSE_FACTOR = 1;
const PAUSE_MAX_MS = 3_000;
/** Maximum number of waiting tasks of one key. */
const WAITING_TASKS_MAX = 256;
const RETRY_AFTER_SECONDS = 2;
/** Number of stored callers (keys) at which the queue removes the callers that have no tasks and need not pause. */
const KEYS_BEFORE_CLEANUP = 1_000;

export interface FairTaskQueue {
  /**
   * Runs `work` when it is the key's turn: immediately, unless the key or the queue must pause, or other keys wait.
   * @param maxMs maximum duration in milliseconds that counts for the pauses. On a busy machine, `work` may take longer
   * @throws RATE_LIMIT_EXCEEDED if too many tasks of this key wait; errors of `work`
   */
  runInTurn<T>(key: string, work: () => T, maxMs?: number): Promise<T>;
  /**
   * Lengthens the pauses of the key and of the queue, as if a task of the key took `ms` milliseconds. For work that runs outside of a turn.
   */
  extendPause(key: string, ms: number): void;
}

interface QueuedSender {
  waitingTasks: (() => void)[];
  pausedUntil: number;
}

/** Clock and timers, which tests can replace. Times are in milliseconds. */
export interface TaskQueueClock {
  now(): number;
  wait(ms: number, callback: () => void): void;
}

const REAL_CLOCK: TaskQueueClock = {
  now: () => performance.now(),
  wait(ms, callback) {
    if (ms <= 0) setImmediate(callback);
    else setTimeout(callback, Math.ceil(ms));
  },
};

export function createFairTaskQueue(clock: TaskQueueClock = REAL_CLOCK): FairTaskQueue {
  const senders = new Map<string, QueuedSender>();
  let queuePausedUntil = 0;
  /** Time for which the next turn is planned. A new plan replaces the earlier plan. */
  let plannedTurnAt = Number.POSITIVE_INFINITY;
  let latestPlanNumber = 0;

  function removeIdleSenders(now: number): void {
    for (const [key, { waitingTasks, pausedUntil }] of senders) {
      if (waitingTasks.length === 0 && pausedUntil <= now) senders.delete(key);
    }
  }

  function getSender(key: string): QueuedSender {
    const existingSender = senders.get(key);
    if (existingSender) return existingSender;
    if (senders.size >= KEYS_BEFORE_CLEANUP) removeIdleSenders(clock.now());
    const sender: QueuedSender = { waitingTasks: [], pausedUntil: 0 };
    senders.set(key, sender);
    return sender;
  }

  function pauseSender(sender: QueuedSender, ms: number): void {
    const now = clock.now();
    sender.pausedUntil = Math.min(Math.max(now, sender.pausedUntil) + ms * SENDER_PAUSE_FACTOR, now + PAUSE_MAX_MS);
    queuePausedUntil = Math.min(Math.max(now, queuePausedUntil) + ms * SHARED_PAUSE_FACTOR, now + PAUSE_MAX_MS);
  }

  function measureWork<T>(sender: QueuedSender, work: () => T, maxMs: number): T {
    const startedAt = clock.now();
    try {
      return work();
    } finally {
      pauseSender(sender, Math.min(clock.now() - startedAt, maxMs));
    }
  }

  /** Runs at most one waiting task, and plans the next turn. Does nothing if a later plan has replaced the plan `planNumber`. */
  function startNextTurn(planNumber: number): void {
    if (planNumber !== latestPlanNumber) return;
    plannedTurnAt = Number.POSITIVE_INFINITY;
    const now = clock.now();
    if (queuePausedUntil <= now) {
      for (const [key, sender] of senders) {
        if (sender.waitingTasks.length === 0 || sender.pausedUntil > now) continue;
        // Moves the key behind all other keys.
        senders.delete(key);
        senders.set(key, sender);
        sender.waitingTasks.shift()!();
        break;
      }
    }
    planNextTurn();
  }

  function planNextTurn(): void {
    let earliestSenderAt = Number.POSITIVE_INFINITY;
    for (const { waitingTasks, pausedUntil } of senders.values()) {
      if (waitingTasks.length > 0) earliestSenderAt = Math.min(earliestSenderAt, pausedUntil);
    }
    const turnAt = Math.max(earliestSenderAt, queuePausedUntil);
    if (turnAt >= plannedTurnAt) return;
    plannedTurnAt = turnAt;
    latestPlanNumber += 1;
    const planNumber = latestPlanNumber;
    clock.wait(turnAt - clock.now(), () => startNextTurn(planNumber));
  }

  return {
    async runInTurn(key, work, maxMs = Number.POSITIVE_INFINITY) {
      const sender = getSender(key);
      const now = clock.now();
      const isFree = sender.waitingTasks.length === 0 && sender.pausedUntil <= now && queuePausedUntil <= now;
      if (isFree && plannedTurnAt > now) return measureWork(sender, work, maxMs);
      if (sender.waitingTasks.length >= WAITING_TASKS_MAX) {
        throw createRateLimitError(
          `too many requests of this sender wait (at most ${WAITING_TASKS_MAX}); send fewer requests at the same time`,
          RETRY_AFTER_SECONDS,
        );
      }
      return new Promise((resolve, reject) => {
        sender.waitingTasks.push(() => {
          try {
            resolve(measureWork(sender, work, maxMs));
          } catch (error) {
            reject(error as Error);
          }
        });
        planNextTurn();
      });
    },
    extendPause: (key, ms) => pauseSender(getSender(key), ms),
  };
}
