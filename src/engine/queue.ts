/** The queue that wakes runners: graphile-worker, one job for each run that waits. The ledger is the truth; a job lost here loses nothing. */
import { makeWorkerUtils, type Runner, run, Logger as WorkerLogger } from "graphile-worker";
import type { Logger } from "pino";

export interface Queue {
  /** Takes jobs, `concurrency` at once, and calls `take` for each. */
  start(): Promise<void>;
  /** Takes no more, and waits for those at work. */
  stop(): Promise<void>;
}

/** How soon a queue that ended by itself, as it does when the database is away for long, is begun anew. */
const RESTART_MS = 1_000;

/*
 * Jobs are marked done in batches, at once: the way without batches awaits nobody's answer, and the connection's loss in that moment
 * would end the process.
 */
const BATCHED = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } };

/** Removes the jobs that died with their worker: the queue gives them up after four hours, and keeps them. */
export async function sweepQueue(url: string): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.cleanup({ tasks: ["DELETE_PERMAFAILED_JOBS"] }).finally(() => utils.release());
}

export function createQueue(options: {
  url: string;
  concurrency: number;
  take: () => Promise<void>;
  log: Logger;
}): Queue {
  const { url, concurrency, take, log } = options;
  let runner: Runner | null = null;
  let restart: NodeJS.Timeout | undefined;
  let stopped = false;

  const logger = new WorkerLogger(() => (level, message) => {
    if (level === "error" || level === "warning") log.warn({ queue: message }, "the queue complains");
    else log.trace({ queue: message }, "queue");
  });

  async function begin(): Promise<void> {
    const begun = await run({
      connectionString: url,
      concurrency,
      maxPoolSize: Math.max(3, concurrency),
      pollInterval: 2_000,
      noHandleSignals: true,
      logger,
      taskList: { run: take },
      preset: BATCHED,
    });
    runner = begun;
    const ended = (error?: unknown) => {
      if (stopped || runner !== begun) return;
      runner = null;
      log.warn({ err: error }, "the queue ended and is begun anew");
      restart = setTimeout(beginAgain, RESTART_MS);
    };
    begun.promise.then(ended, ended);
  }

  function beginAgain(): void {
    begin().then(
      // Stopped while it began: what stop() could not see yet is stopped here.
      () => (stopped ? end() : undefined),
      () => {
        if (!stopped) restart = setTimeout(beginAgain, RESTART_MS);
      },
    );
  }

  async function end(): Promise<void> {
    const last = runner;
    runner = null;
    await last?.stop();
  }

  return {
    start: begin,
    async stop() {
      stopped = true;
      clearTimeout(restart);
      await end();
    },
  };
}
