/** Entry point of a thread of `threads.ts`: calls one function of one module with the content of each message. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";

/** Nice value with which the main thread comes first. Only Linux applies it to one thread; other systems to the whole process. */
const THREAD_NICENESS = 19;

const { module, name } = workerData as { module: string; name: string };
if (process.platform === "linux") setPriority(THREAD_NICENESS);
const work = ((await import(module)) as Record<string, (input: unknown) => unknown>)[name]!;
parentPort!.on("message", (input: unknown) => parentPort!.postMessage(work(input)));
