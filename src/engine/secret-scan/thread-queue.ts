/** Passes tasks to the scan thread, one at a time. Owners of tasks, such as apps, take turns. The thread ends when it is idle. */

import { Worker } from "node:worker_threads";
import { runInBackground } from "../../background.js";
import type { Secret } from "./scan.js";
import type { ScanTask } from "./task.js";
import type { ScanReply, ScanRequest } from "./thread.js";

interface WaitingTask {
  key: string;
  secrets: readonly Secret[];
  task: ScanTask;
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** Time without tasks after which the thread ends, to free its memory. */
const THREAD_IDLE_MS = 30_000;
const THREAD_MODULE = new URL("./thread.js", import.meta.url);

interface ScanThreadQueue {
  /** Runs a task in the thread. The owners of tasks take turns. Rejects if the thread ends. */
  runTask(owner: string, key: string, secrets: readonly Secret[], task: ScanTask): Promise<unknown>;
}

export function createScanThreadQueue(): ScanThreadQueue {
  const queueByOwner = new Map<string, WaitingTask[]>();
  let worker: Worker | null = null;
  let current: WaitingTask | null = null;
  let idleTimer: NodeJS.Timeout | undefined;

  function startThread(): Worker {
    const newWorker = new Worker(THREAD_MODULE);
    // An idle thread does not keep the process running.
    newWorker.unref();
    newWorker.on("message", (reply: ScanReply) => handleReply(reply));
    newWorker.on("error", (error) => onEnd(newWorker, error as Error));
    newWorker.on("exit", () => onEnd(newWorker, new Error("the thread that scans for secrets ended")));
    return newWorker;
  }

  function onEnd(endedWorker: Worker, error: Error): void {
    if (worker !== endedWorker) return;
    worker = null;
    current?.reject(error);
    current = null;
    sendNextRequest();
  }

  /** Sends a request of the current task. If that fails, for example because no thread can start, rejects the task. */
  function sendToThread(request: ScanRequest): void {
    try {
      worker ??= startThread();
      worker.ref();
      worker.postMessage(request);
    } catch (error) {
      worker?.unref();
      current?.reject(error as Error);
      current = null;
    }
  }

  function handleReply(reply: ScanReply): void {
    const { key, secrets, task, resolve, reject } = current!;
    if ("missing" in reply) sendToThread({ key, secrets, task });
    else {
      current = null;
      worker?.unref();
      if ("error" in reply) reject(new Error(reply.error));
      else resolve(reply.answer);
    }
    sendNextRequest();
  }

  function endThreadWhenIdle(): void {
    idleTimer = setTimeout(() => {
      const idleWorker = worker;
      worker = null;
      if (idleWorker) runInBackground(idleWorker.terminate());
    }, THREAD_IDLE_MS).unref();
  }

  /** Sends the first task that waits. Goes on with the next one if the task cannot be sent. */
  function sendNextRequest(): void {
    clearTimeout(idleTimer);
    while (current === null) {
      const nextEntry = queueByOwner.entries().next().value;
      if (!nextEntry) {
        endThreadWhenIdle();
        return;
      }
      const [owner, queue] = nextEntry;
      current = queue.shift()!;
      queueByOwner.delete(owner);
      if (queue.length > 0) queueByOwner.set(owner, queue);
      sendToThread({ key: current.key, task: current.task });
    }
  }

  return {
    runTask: (owner, key, secrets, task) =>
      new Promise((resolve, reject) => {
        const queue = queueByOwner.get(owner) ?? [];
        queue.push({ key, secrets, task, resolve, reject });
        queueByOwner.set(owner, queue);
        sendNextRequest();
      }),
  };
}
