/** Calls a pure function beside the event loop, within bounds of time and memory. Knows not what the function does. */

import { Worker } from "node:worker_threads";
import { runInBackground } from "../background.js";

/** What the function answered, or which limit it passed. */
export type Called<T> = { ok: true; value: T } | { ok: false; limit: "time" | "memory" };

export interface ThreadsOptions {
  /** The module, and its function of one argument; argument and answer are structured clones. */
  module: URL;
  name: string;
  memoryMb: number;
  timeoutMs: number;
}

export interface Threads<I, O> {
  /** As many at once as are asked for. Rejects with what the function threw. */
  call(input: I): Promise<Called<O>>;
}

/** A thread that has had nothing to do for so long ends. */
const IDLE_MS = 10_000;
const ENTRY = new URL("./threads/entry.js", import.meta.url);

export function createThreads<I, O>(options: ThreadsOptions): Threads<I, O> {
  const { module, name, memoryMb, timeoutMs } = options;
  const idle = new Map<Worker, NodeJS.Timeout>();

  function open(): Worker {
    const worker = new Worker(ENTRY, {
      workerData: { module: module.href, name },
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      // Nothing of the process is the thread's to see.
      env: {},
    });
    worker.unref();
    // What happens to one that nobody calls is nobody's trouble.
    return worker.on("error", () => {});
  }

  /** One that ended while it was idle is not called again. */
  function take(): Worker {
    for (const [worker, timer] of idle) {
      clearTimeout(timer);
      idle.delete(worker);
      if (worker.threadId > 0) return worker;
    }
    return open();
  }

  function end(worker: Worker): void {
    idle.delete(worker);
    runInBackground(worker.terminate());
  }

  return {
    async call(input) {
      const worker = take();
      const { promise, resolve, reject } = Promise.withResolvers<Called<O>>();
      const timer = setTimeout(() => resolve({ ok: false, limit: "time" }), timeoutMs);
      const answer = (value: O) => resolve({ ok: true, value });
      const fail = (error: NodeJS.ErrnoException) => {
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve({ ok: false, limit: "memory" });
        else reject(error);
      };
      worker.once("message", answer).on("error", fail).postMessage(input);
      const called = await promise.finally(() => {
        clearTimeout(timer);
        worker.off("message", answer).off("error", fail);
      });
      if (called.ok) idle.set(worker, setTimeout(end, IDLE_MS, worker).unref());
      else end(worker);
      return called;
    },
  };
}
