/** Entry point of a thread of `threads.ts`: calls one function of one module with each message. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";

/**
 * Niceness of the thread, below the main thread. Only on Linux does it apply to a single thread; elsewhere it would
 * apply to the whole process.
 */
const PRIORITY = 19;

const { module, name } = workerData as { module: string; name: string };
if (process.platform === "linux") setPriority(PRIORITY);
const work = ((await import(module)) as Record<string, (input: unknown) => unknown>)[name]!;
parentPort!.on("message", (input: unknown) => parentPort!.postMessage(work(input)));
