/** The thread for scans that would hold up the main one: answers one task after the other. Evaluated as a worker alone. */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { createKeptScans } from "./kept-scans.js";
import type { Secret } from "./scan.js";
import { perform, type Task } from "./task.js";

/** `secrets` stay away where the thread may have the scan already; it answers `missing` where it has not. */
export interface Request {
  key: string;
  secrets?: readonly Secret[];
  task: Task;
}

export type Reply = { answer: unknown } | { missing: true } | { error: string };

/** Behind whatever answers requests. On Linux alone is the priority one thread's, elsewhere it is the whole process's. */
const PRIORITY = 10;
if (process.platform === "linux") setPriority(PRIORITY);

const SCANS_MAX_BYTES = 128 * 1024 * 1024;

const scans = createKeptScans(SCANS_MAX_BYTES);

function reply({ key, secrets, task }: Request): Reply {
  const scan = scans.find(key) ?? (secrets && scans.make(key, secrets));
  if (!scan) return { missing: true };
  try {
    return { answer: perform(scan, task) };
  } catch (error) {
    return { error: String(error) };
  }
}

parentPort!.on("message", (request: Request) => parentPort!.postMessage(reply(request)));
