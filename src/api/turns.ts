/**
 * Divides the main thread between callers. Expensive pieces of work run in turns, and a caller rests in proportion after each, so that none
 * has more than a share of the thread. Knows nothing of the work.
 */
import { tooOften } from "../errors.js";

/** How many times as long as its piece took a key rests: it has a tenth of the thread at the most. */
const REST_TIMES = 9;
/** The same for all of them together: they leave half of it to whatever takes no turns. */
const REST_TIMES_OF_ALL = 1;
const REST_MAX_MS = 3_000;
/** More pieces of one key than that do not wait. */
const WAITING_MAX = 256;
const RETRY_SECONDS = 2;
/** Keys that rest no longer are forgotten when there are so many. */
const KEYS_SWEPT = 1_000;

export interface Turns {
  /**
   * Does the work when it is the key's turn: at once, unless the key rests or others are in the way. Of work whose size is bounded,
   * `most` milliseconds count: what it takes beyond is the machine's, such as a collection of garbage that fell into it.
   * @throws RATE_LIMIT_EXCEEDED where too much of that key waits already; what the work throws
   */
  take<T>(key: string, work: () => T, most?: number): Promise<T>;
  /** Counts work that could not be done in a turn, or is done later: the key rests for it as well. */
  owe(key: string, ms: number): void;
}

interface Sender {
  waiting: (() => void)[];
  restsUntil: number;
}

/** Milliseconds. */
export interface TurnsClock {
  now(): number;
  wait(ms: number, then: () => void): void;
}

const REAL: TurnsClock = {
  now: () => performance.now(),
  wait(ms, then) {
    if (ms <= 0) setImmediate(then);
    else setTimeout(then, Math.ceil(ms));
  },
};

export function createTurns(clock: TurnsClock = REAL): Turns {
  const senders = new Map<string, Sender>();
  let allRestUntil = 0;
  /** When the next piece may be done, of those that wait; each plan replaces the one before. */
  let plannedFor = Number.POSITIVE_INFINITY;
  let plans = 0;

  function sweep(now: number): void {
    for (const [key, { waiting, restsUntil }] of senders) {
      if (waiting.length === 0 && restsUntil <= now) senders.delete(key);
    }
  }

  function senderOf(key: string): Sender {
    const known = senders.get(key);
    if (known) return known;
    if (senders.size >= KEYS_SWEPT) sweep(clock.now());
    const sender: Sender = { waiting: [], restsUntil: 0 };
    senders.set(key, sender);
    return sender;
  }

  function rest(sender: Sender, ms: number): void {
    const now = clock.now();
    sender.restsUntil = Math.min(Math.max(now, sender.restsUntil) + ms * REST_TIMES, now + REST_MAX_MS);
    allRestUntil = Math.min(Math.max(now, allRestUntil) + ms * REST_TIMES_OF_ALL, now + REST_MAX_MS);
  }

  function measured<T>(sender: Sender, work: () => T, most: number): T {
    const begun = clock.now();
    try {
      return work();
    } finally {
      rest(sender, Math.min(clock.now() - begun, most));
    }
  }

  /** One piece in a turn of the event loop. */
  function next(planNumber: number): void {
    if (planNumber !== plans) return;
    plannedFor = Number.POSITIVE_INFINITY;
    const now = clock.now();
    if (allRestUntil <= now) {
      for (const [key, sender] of senders) {
        if (sender.waiting.length === 0 || sender.restsUntil > now) continue;
        // Behind all others from now on.
        senders.delete(key);
        senders.set(key, sender);
        sender.waiting.shift()!();
        break;
      }
    }
    plan();
  }

  function plan(): void {
    let first = Number.POSITIVE_INFINITY;
    for (const { waiting, restsUntil } of senders.values()) {
      if (waiting.length > 0) first = Math.min(first, restsUntil);
    }
    const at = Math.max(first, allRestUntil);
    if (at >= plannedFor) return;
    plannedFor = at;
    plans += 1;
    const planNumber = plans;
    clock.wait(at - clock.now(), () => next(planNumber));
  }

  return {
    async take(key, work, most = Number.POSITIVE_INFINITY) {
      const sender = senderOf(key);
      const now = clock.now();
      const isFree = sender.waiting.length === 0 && sender.restsUntil <= now && allRestUntil <= now;
      if (isFree && plannedFor > now) return measured(sender, work, most);
      if (sender.waiting.length >= WAITING_MAX) {
        throw tooOften("too much work of this sender waits already", RETRY_SECONDS);
      }
      return new Promise((resolve, reject) => {
        sender.waiting.push(() => {
          try {
            resolve(measured(sender, work, most));
          } catch (error) {
            reject(error as Error);
          }
        });
        plan();
      });
    },
    owe: (key, ms) => rest(senderOf(key), ms),
  };
}
