/**
 * The queue that wakes runners: graphile-worker, one job for each run that waits. The ledger is the truth, and looked at anyway: a job
 * lost here costs a second or two. A queue that ends is replaced.
 */
import { setTimeout as delay } from "node:timers/promises";
import { makeWorkerUtils, type Runner, run, Logger as WorkerLogger } from "graphile-worker";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { createPool } from "../postgres.js";

export interface Queue {
  /** Takes jobs, `concurrency` at once, and calls `take` for each. */
  start(): Promise<void>;
  /** How often it had to be begun anew. */
  restarts(): number;
  /** Takes no more, and waits for those at work. */
  stop(): Promise<void>;
}

const RESTART_MS = 1_000;
/** Jobs that have done their work are marked within this, unless the database is away. */
const STOP_LIMIT_MS = 2_000;
const NAME = "svc-app-actions queue";

/** Connections that a queue of that concurrency opens at most. */
export const queueConnections = (concurrency: number): number => Math.max(3, concurrency);

/*
 * Jobs are marked done in batches, at once: the way without batches awaits nobody's answer, and the connection's loss in that moment
 * would end the process.
 */
const BATCHED = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } };

/**
 * The listener gives its connection back twice where that is lost while it stops and its first LISTEN is not answered. The pool throws at
 * the second time, which nobody catches, and which would end the process.
 */
function releasedOnce(pool: Pool, log: Logger): Pool {
  const connect = pool.connect.bind(pool);
  function connectOnce(...[callback]: Partial<Parameters<typeof connect>>): unknown {
    if (!callback) return connect();
    return connect((error, client, release) => {
      if (!client) return callback(error, client, release);
      let isReleased = false;
      callback(error, client, (fault) => {
        if (isReleased) log.debug("the queue gave a connection back twice");
        else release(fault);
        isReleased = true;
      });
    });
  }
  return Object.assign(pool, { connect: connectOnce });
}

/** Removes the jobs that died with their worker: the queue gives them up after four hours, and keeps them. */
export async function sweepQueue(url: string): Promise<void> {
  const pgPool = createPool(url, 1, NAME);
  try {
    const utils = await makeWorkerUtils({ pgPool });
    try {
      await utils.cleanup({ tasks: ["DELETE_PERMAFAILED_JOBS"] });
    } finally {
      await utils.release();
    }
  } finally {
    await pgPool.end();
  }
}

export function createQueue(options: {
  url: string;
  concurrency: number;
  take: () => Promise<void>;
  log: Logger;
}): Queue {
  const { url, concurrency, take, log } = options;
  const pgPool = releasedOnce(createPool(url, queueConnections(concurrency), NAME), log);
  const atWork = new Set<Promise<void>>();
  let runner: Runner | null = null;
  let restart: NodeJS.Timeout | undefined;
  let restarts = 0;
  let stopped = false;

  const logger = new WorkerLogger(() => (level, message, { error: err } = {}) => {
    if (level === "error" || level === "warning") log.warn({ queue: message, err }, "the queue reports a problem");
    else log.trace({ queue: message }, "queue");
  });

  function work(): Promise<void> {
    const done = take();
    atWork.add(done);
    const leave = () => atWork.delete(done);
    done.then(leave, leave);
    return done;
  }

  async function begin(): Promise<void> {
    const begun = await run({
      pgPool,
      concurrency,
      pollInterval: 2_000,
      noHandleSignals: true,
      logger,
      taskList: { run: work },
      preset: BATCHED,
    });
    runner = begun;
    const replace = (error?: unknown) => {
      if (stopped || runner !== begun) return;
      runner = null;
      log.warn({ err: error }, "the queue ended and is started again");
      restart = setTimeout(beginAgain, RESTART_MS);
    };
    begun.promise.then(replace, replace);
    // It gives up as soon as it cannot mark a job done. It may then not come to its end: two such failures at once miscount.
    begun.events.once("pool:gracefulShutdown", () => replace());
  }

  function beginAgain(): void {
    restarts += 1;
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
    const ended = last?.stop().catch(() => undefined);
    await Promise.allSettled(atWork);
    await Promise.race([ended, delay(STOP_LIMIT_MS, undefined, { ref: false })]);
  }

  return {
    start: begin,
    restarts: () => restarts,
    async stop() {
      stopped = true;
      clearTimeout(restart);
      await end();
      await Promise.race([pgPool.end(), delay(STOP_LIMIT_MS, undefined, { ref: false })]);
    },
  };
}
