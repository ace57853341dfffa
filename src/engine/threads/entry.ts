/** What runs in a thread of `threads.ts`: one function of one module, called with what comes. Knows neither of the two. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";

/** Behind whatever answers requests. On Linux alone is the priority one thread's, elsewhere it is the whole process's. */
const PRIORITY = 19;

const { module, name } = workerData as { module: string; name: string };
if (process.platform === "linux") setPriority(PRIORITY);
const work = ((await import(module)) as Record<string, (input: unknown) => unknown>)[name]!;
parentPort!.on("message", (input: unknown) => parentPort!.postMessage(work(input)));
