/** Worker thread for long scans. Executes one task after the other. */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { createKeptScans } from "./kept-scans.js";
import type { Secret } from "./scan.js";
import { performScanTask, type Task } from "./task.js";

/** `secrets` are left out if the thread may have the scan in its cache; it responds with `missing` if not. */
export interface Request {
  key: string;
  secrets?: readonly Secret[];
  task: Task;
}

export type ScanReply = { answer: unknown } | { missing: true } | { error: string };

/**
 * Niceness of the thread, below the main thread. Only on Linux does it apply to a single thread; elsewhere it would
 * apply to the whole process.
 */
const PRIORITY = 10;
if (process.platform === "linux") setPriority(PRIORITY);

const SCANS_MAX_BYTES = 128 * 1024 * 1024;

const scans = createKeptScans(SCANS_MAX_BYTES);

function replyTo({ key, secrets, task }: Request): ScanReply {
  const scan = scans.find(key) ?? (secrets && scans.make(key, secrets));
  if (!scan) return { missing: true };
  try {
    return { answer: performScanTask(scan, task) };
  } catch (error) {
    return { error: String(error) };
  }
}

parentPort!.on("message", (request: Request) => parentPort!.postMessage(replyTo(request)));
