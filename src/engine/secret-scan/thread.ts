/** Worker thread for long scans. Executes one task after the other. */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import type { Secret } from "./scan.js";
import { createScanCache } from "./scan-cache.js";
import { performScanTask, type ScanTask } from "./task.js";

/** `secrets` is absent if the thread probably has cached the scan with this key. If not, the thread responds with `missing`. */
export interface ScanRequest {
  key: string;
  secrets?: readonly Secret[];
  task: ScanTask;
}

export type ScanReply = { answer: unknown } | { missing: true } | { error: string };

/** Nice value with which the main thread comes first. Only Linux applies it to one thread; other systems to the whole process. */
const THREAD_NICENESS = 10;
if (process.platform === "linux") setPriority(THREAD_NICENESS);

const SCAN_CACHE_MAX_BYTES = 128 * 1024 * 1024;

const scans = createScanCache(SCAN_CACHE_MAX_BYTES);

function executeRequest({ key, secrets, task }: ScanRequest): ScanReply {
  const scan = scans.find(key) ?? (secrets && scans.create(key, secrets));
  if (!scan) return { missing: true };
  try {
    return { answer: performScanTask(scan, task) };
  } catch (error) {
    return { error: String(error) };
  }
}

parentPort!.on("message", (request: ScanRequest) => parentPort!.postMessage(executeRequest(request)));
