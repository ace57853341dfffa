/**
 * Divides the main thread between callers. Expensive work runs in turns. After each turn its caller pauses in proportion to the duration,
 * so that no caller gets more than its share of the thread.
 */
import { rateLimitError } from "../errors.js";

/** Pause of a key as a multiple of its work, so that a key gets at most a tenth of the thread. */
const PAUSE_FACTOR = 9;
/**
 * Pause of all keys together, as a multiple of their work. This leaves half of the thread to work that takes no turns.
 */
const SHARED_PAUSE_FACTOR = 1;
const REST_MAX_MS = 3_000;
/** Maximum number of waiting tasks for one key. */
const WAITING_MAX = 256;
const RETRY_SECONDS = 2;
/** Number of keys above which keys whose pause has ended are removed from memory. */
const KEYS_SWEPT = 1_000;

export interface Turns {
  /**
   * Runs the work when it is the key's turn: immediately, unless the key must pause or others are waiting. At most
   * `max` milliseconds count for work of limited size, because a longer time comes from the machine, for example from a
   * garbage collection.
   * @throws RATE_LIMIT_EXCEEDED if too much work of that key is waiting; errors of the work
   */
  takeTurn<T>(key: string, work: () => T, max?: number): Promise<T>;
  /** Counts work that cannot run in a turn, or runs later. The key pauses for it as well. */
  owe(key: string, ms: number): void;
}

interface TurnSender {
  waiting: (() => void)[];
  restsUntil: number;
}

/** Clock and timers, which tests replace. Times are in milliseconds. */
export interface TurnsClock {
  now(): number;
  wait(ms: number, callback: () => void): void;
}

const REAL_CLOCK: TurnsClock = {
  now: () => performance.now(),
  wait(ms, callback) {
    if (ms <= 0) setImmediate(callback);
    else setTimeout(callback, Math.ceil(ms));
  },
};

export function createTurns(clock: TurnsClock = REAL_CLOCK): Turns {
  const senders = new Map<string, TurnSender>();
  let allRestUntil = 0;
  /** Time of the next planned turn. A new plan replaces the earlier one. */
  let plannedFor = Number.POSITIVE_INFINITY;
  let plannedTurns = 0;

  function removeIdleSenders(now: number): void {
    for (const [key, { waiting, restsUntil }] of senders) {
      if (waiting.length === 0 && restsUntil <= now) senders.delete(key);
    }
  }

  function senderOf(key: string): TurnSender {
    const knownSender = senders.get(key);
    if (knownSender) return knownSender;
    if (senders.size >= KEYS_SWEPT) removeIdleSenders(clock.now());
    const sender: TurnSender = { waiting: [], restsUntil: 0 };
    senders.set(key, sender);
    return sender;
  }

  function restSender(sender: TurnSender, ms: number): void {
    const now = clock.now();
    sender.restsUntil = Math.min(Math.max(now, sender.restsUntil) + ms * PAUSE_FACTOR, now + REST_MAX_MS);
    allRestUntil = Math.min(Math.max(now, allRestUntil) + ms * SHARED_PAUSE_FACTOR, now + REST_MAX_MS);
  }

  function measureWork<T>(sender: TurnSender, work: () => T, max: number): T {
    const started = clock.now();
    try {
      return work();
    } finally {
      restSender(sender, Math.min(clock.now() - started, max));
    }
  }

  /** Runs one task in each turn of the event loop. */
  function startNextTurn(planNumber: number): void {
    if (planNumber !== plannedTurns) return;
    plannedFor = Number.POSITIVE_INFINITY;
    const now = clock.now();
    if (allRestUntil <= now) {
      for (const [key, sender] of senders) {
        if (sender.waiting.length === 0 || sender.restsUntil > now) continue;
        // Moves the key behind all others.
        senders.delete(key);
        senders.set(key, sender);
        sender.waiting.shift()!();
        break;
      }
    }
    planNextTurn();
  }

  function planNextTurn(): void {
    let first = Number.POSITIVE_INFINITY;
    for (const { waiting, restsUntil } of senders.values()) {
      if (waiting.length > 0) first = Math.min(first, restsUntil);
    }
    const at = Math.max(first, allRestUntil);
    if (at >= plannedFor) return;
    plannedFor = at;
    plannedTurns += 1;
    const planNumber = plannedTurns;
    clock.wait(at - clock.now(), () => startNextTurn(planNumber));
  }

  return {
    async takeTurn(key, work, max = Number.POSITIVE_INFINITY) {
      const sender = senderOf(key);
      const now = clock.now();
      const isFree = sender.waiting.length === 0 && sender.restsUntil <= now && allRestUntil <= now;
      if (isFree && plannedFor > now) return measureWork(sender, work, max);
      if (sender.waiting.length >= WAITING_MAX) {
        throw rateLimitError("too much work from this sender is already waiting", RETRY_SECONDS);
      }
      return new Promise((resolve, reject) => {
        sender.waiting.push(() => {
          try {
            resolve(measureWork(sender, work, max));
          } catch (error) {
            reject(error as Error);
          }
        });
        planNextTurn();
      });
    },
    owe: (key, ms) => restSender(senderOf(key), ms),
  };
}
