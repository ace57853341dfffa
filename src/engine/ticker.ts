/** Calls a function whenever its work is due. The function returns the time at which its next work is due. */
import type { Logger } from "pino";

/** Maximum sleep. It limits the delay of the work after a lost notification, a changed clock or an outage of the database. */
const SLEEP_MAX_MS = 1_000;
const RETRY_MS = 500;
/** A ticker is unhealthy if it had no successful call for this time. */
const UNHEALTHY_AFTER_MS = 10_000;

export interface Ticker {
  /** Resolves when the first call of `work` has ended. */
  start(): Promise<void>;
  /** Calls `work` now, because work may be due earlier than expected. If `work` is already running, calls it again when it has ended. */
  wake(): void;
  isHealthy(): boolean;
  stop(): Promise<void>;
}

/**
 * Creates a ticker. `work` returns the Unix time in milliseconds of the next work; null if there is none. `msUntil` converts this time to a
 * delay.
 */
export function createTicker(options: {
  work: () => Promise<number | null>;
  msUntil: (time: number) => number;
  sleepMaxMs?: number;
  log: Logger;
}): Ticker {
  const { work, msUntil, sleepMaxMs = SLEEP_MAX_MS, log } = options;
  let timer: NodeJS.Timeout | undefined;
  let activeWork: Promise<void> | null = null;
  let shouldRunAgain = false;
  let stopped = false;
  let lastSuccessAt = Number.NEGATIVE_INFINITY;

  async function runOnce(): Promise<number> {
    try {
      const dueAt = await work();
      lastSuccessAt = performance.now();
      return dueAt === null ? sleepMaxMs : Math.min(sleepMaxMs, Math.max(0, msUntil(dueAt)));
    } catch (error) {
      log.warn({ err: error }, "periodic work failed; the ticker runs it again soon");
      return RETRY_MS;
    }
  }

  function startWork(): void {
    if (stopped) return;
    clearTimeout(timer);
    shouldRunAgain = activeWork !== null;
    if (shouldRunAgain) return;
    activeWork = runOnce().then((sleepMs) => {
      activeWork = null;
      if (stopped) return;
      timer = setTimeout(startWork, shouldRunAgain ? 0 : sleepMs);
      shouldRunAgain = false;
    });
  }

  return {
    async start() {
      startWork();
      await activeWork;
    },
    wake: startWork,
    isHealthy: () => performance.now() - lastSuccessAt < UNHEALTHY_AFTER_MS,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await activeWork;
    },
  };
}
