/** Finds the renderer that fills the shared processes: pauses all suspects, and lets one after the other continue for a moment. */
import { setTimeout as delay } from "node:timers/promises";
import { readBrowserProcessUsage, signalProcess } from "./processes.js";

const CHECK_INTERVAL_MS = 20;
/** Maximum wait for data that renderers sent before they were paused. */
const SETTLE_TIMEOUT_MS = 500;
/** CPU time for which the search lets a renderer continue. TEST_MAX_MS limits the elapsed time. */
const TEST_MAX_CPU_MS = 40;
const TEST_MAX_MS = 250;
const STABLE_GROWTH_BYTES = 1024 * 1024;
const SUSPICIOUS_GROWTH_BYTES = 6 * 1024 * 1024;

interface BrowserGroup {
  id: number;
  sharedPids: readonly number[];
}

const readSharedBytes = ({ sharedPids, id }: BrowserGroup) =>
  sharedPids.reduce((sum, pid) => sum + (readBrowserProcessUsage(pid, id)?.residentBytes ?? 0), 0);
const readCpuMs = (pid: number, { id }: BrowserGroup) => readBrowserProcessUsage(pid, id)?.cpuMs ?? 0;

/** Waits until the memory of the shared processes hardly grows, or for SETTLE_TIMEOUT_MS. Returns its size. */
async function waitForStableMemory(group: BrowserGroup): Promise<number> {
  let bytes = readSharedBytes(group);
  for (const deadline = Date.now() + SETTLE_TIMEOUT_MS; Date.now() < deadline; ) {
    await delay(CHECK_INTERVAL_MS);
    const next = readSharedBytes(group);
    if (next - bytes < STABLE_GROWTH_BYTES) return next;
    bytes = next;
  }
  return bytes;
}

async function growsWhileRunning(pid: number, group: BrowserGroup): Promise<boolean> {
  const bytesBefore = await waitForStableMemory(group);
  const cpuMsBefore = readCpuMs(pid, group);
  signalProcess(pid, "SIGCONT");
  for (const deadline = Date.now() + TEST_MAX_MS; Date.now() < deadline; ) {
    await delay(CHECK_INTERVAL_MS);
    if (readSharedBytes(group) - bytesBefore > SUSPICIOUS_GROWTH_BYTES) return true;
    if (readCpuMs(pid, group) - cpuMsBefore > TEST_MAX_CPU_MS) break;
  }
  return (await waitForStableMemory(group)) - bytesBefore > SUSPICIOUS_GROWTH_BYTES;
}

/** Returns the ID of the first suspect that makes the memory grow, or null. @param suspects process IDs of renderers, the busiest first */
export async function findMemoryFillingRenderer(
  suspects: readonly number[],
  group: BrowserGroup,
): Promise<number | null> {
  for (const pid of suspects) signalProcess(pid, "SIGSTOP");
  try {
    for (const pid of suspects) {
      if (await growsWhileRunning(pid, group)) return pid;
      // Pauses the renderer again. Otherwise, it could fill the memory while the next suspect is tested.
      signalProcess(pid, "SIGSTOP");
    }
    return null;
  } finally {
    for (const pid of suspects) signalProcess(pid, "SIGCONT");
  }
}
