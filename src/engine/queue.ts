/** The queue that wakes runners: graphile-worker, one job for each run that waits. The ledger is the truth; a job lost here loses nothing. */
import { type Runner, run, Logger as WorkerLogger } from "graphile-worker";
import type { Logger } from "pino";

export interface Queue {
  /** Takes jobs, `concurrency` at once, and calls `take` for each. */
  start(): Promise<void>;
  /** Takes no more, and waits for those at work. */
  stop(): Promise<void>;
}

export function createQueue(options: {
  url: string;
  concurrency: number;
  take: () => Promise<void>;
  log: Logger;
}): Queue {
  const { url, concurrency, take, log } = options;
  let runner: Runner | null = null;

  const logger = new WorkerLogger(() => (level, message) => {
    if (level === "error" || level === "warning") log.warn({ queue: message }, "the queue complains");
    else log.trace({ queue: message }, "queue");
  });

  return {
    async start() {
      runner = await run({
        connectionString: url,
        concurrency,
        maxPoolSize: Math.max(3, concurrency),
        pollInterval: 2_000,
        noHandleSignals: true,
        logger,
        taskList: { run: take },
      });
      // Its end is reported by stop(); an unhandled rejection here would end the process.
      runner.promise.catch((error) => log.error({ err: error }, "the queue stopped"));
    },
    async stop() {
      const last = runner;
      runner = null;
      await last?.stop();
    },
  };
}
