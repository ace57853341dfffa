/** Calls a pure function in another thread, with limits for its time and memory. */

import { Worker } from "node:worker_threads";
import { runInBackground } from "../background.js";

/** Result of the function, or the limit (time or memory) that the call has exceeded. */
type ThreadOutcome<T> = { ok: true; value: T } | { ok: false; limit: "time" | "memory" };

interface ThreadPoolOptions {
  /** Module that exports a function with one argument. Argument and result are copied (structured clone). */
  module: URL;
  /** Name of the function. Callers check this text by `satisfies keyof typeof module`, which fails after a rename. */
  name: string;
  memoryMb: number;
  timeoutMs: number;
}

interface ThreadPool<I, O> {
  /** Calls the function in a thread. Several calls can run concurrently. Rejects with the error that the function throws. */
  call(input: I): Promise<ThreadOutcome<O>>;
}

const IDLE_TIMEOUT_MS = 10_000;
const ENTRY_MODULE = new URL("./threads/entry.js", import.meta.url);

export function createThreadPool<I, O>(options: ThreadPoolOptions): ThreadPool<I, O> {
  const { module, name, memoryMb, timeoutMs } = options;
  const idleWorkers = new Map<Worker, NodeJS.Timeout>();

  function startWorker(): Worker {
    const worker = new Worker(ENTRY_MODULE, {
      workerData: { module: module.href, name },
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      // The thread must not get the environment variables of the process, which may contain secrets.
      env: {},
    });
    worker.unref();
    // Ignores errors of the thread while it is idle, because no call waits for it.
    return worker.on("error", () => {});
  }

  /** Returns an idle thread, or starts one. Skips threads that ended while they were idle. */
  function acquireWorker(): Worker {
    for (const [worker, timer] of idleWorkers) {
      clearTimeout(timer);
      idleWorkers.delete(worker);
      if (worker.threadId > 0) return worker;
    }
    return startWorker();
  }

  function endWorker(worker: Worker): void {
    idleWorkers.delete(worker);
    runInBackground(worker.terminate());
  }

  return {
    async call(input) {
      const worker = acquireWorker();
      const { promise, resolve, reject } = Promise.withResolvers<ThreadOutcome<O>>();
      const timer = setTimeout(() => resolve({ ok: false, limit: "time" }), timeoutMs);
      const resolveWithValue = (value: O) => resolve({ ok: true, value });
      const fail = (error: NodeJS.ErrnoException) => {
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve({ ok: false, limit: "memory" });
        else reject(error);
      };
      worker.once("message", resolveWithValue).on("error", fail).postMessage(input);
      const outcome = await promise.finally(() => {
        clearTimeout(timer);
        worker.off("message", resolveWithValue).off("error", fail);
      });
      if (outcome.ok) idleWorkers.set(worker, setTimeout(endWorker, IDLE_TIMEOUT_MS, worker).unref());
      else endWorker(worker);
      return outcome;
    },
  };
}
