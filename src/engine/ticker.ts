/** Calls one piece of work whenever it is due, sleeping in between. Knows no action and no table: the work says when it is due next. */
import type { Logger } from "pino";

/** Longest sleep: a lost notice, a stepped clock or a database that was away costs this much at the most. */
const SLEEP_MAX_MS = 1_000;
const RETRY_MS = 500;
/** Work that has not come through for so long is no longer done. */
const STALE_MS = 10_000;

export interface Ticker {
  /** Resolves when the first look is done. */
  start(): Promise<void>;
  /** Looks at once: something may be due earlier than was known. */
  wake(): void;
  /** Whether the work came through lately. */
  healthy(): boolean;
  /** Resolves when the work at hand is done; none follows. */
  stop(): Promise<void>;
}

/**
 * `work` does what is due and answers with the Unix time in milliseconds at which more is, null when nothing is in sight.
 * `msUntil` turns such a time into a wait.
 */
export function createTicker(options: {
  work: () => Promise<number | null>;
  msUntil: (time: number) => number;
  sleepMaxMs?: number;
  log: Logger;
}): Ticker {
  const { work, msUntil, sleepMaxMs = SLEEP_MAX_MS, log } = options;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> | null = null;
  let again = false;
  let stopped = false;
  let lastDone = Number.NEGATIVE_INFINITY;

  async function once(): Promise<number> {
    try {
      const due = await work();
      lastDone = performance.now();
      return due === null ? sleepMaxMs : Math.min(sleepMaxMs, Math.max(0, msUntil(due)));
    } catch (error) {
      log.warn({ err: error }, "the ticker's work failed, it is tried again");
      return RETRY_MS;
    }
  }

  function look(): void {
    if (stopped) return;
    clearTimeout(timer);
    again = working !== null;
    if (again) return;
    working = once().then((sleep) => {
      working = null;
      if (stopped) return;
      timer = setTimeout(look, again ? 0 : sleep);
      again = false;
    });
  }

  return {
    async start() {
      look();
      await working;
    },
    wake: look,
    healthy: () => performance.now() - lastDone < STALE_MS,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await working;
    },
  };
}
