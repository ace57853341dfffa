/**
 * Finds the renderer that fills the browser's own processes with data. These do not report whose data it is. So all suspects are paused,
 * and then each one continues for a moment, until the browser's memory grows with one of them.
 */
import { setTimeout as delay } from "node:timers/promises";
import { residentBytesOf, signal, usageOf } from "./processes.js";

const CHECK_INTERVAL_MS = 20;
/** Maximum wait for the data that was sent before the pause. */
const SETTLE_MS = 500;
/** Turn of one renderer: this processor time, or this time at most. */
const TURN_SPENT_MS = 40;
const TURN_MS = 250;
const STILL_BYTES = 1024 * 1024;
const GROWTH_BYTES = 6 * 1024 * 1024;

/** Process group of a browser, and its processes that serve all pages. */
interface BrowserGroup {
  id: number;
  sharedPids: readonly number[];
}

const bytesHeldBy = ({ sharedPids, id }: BrowserGroup) => residentBytesOf(sharedPids, id);
const timeSpentBy = async (pid: number, { id }: BrowserGroup) => (await usageOf(pid, id))?.spent ?? 0;

/** @returns the memory of the browser's own processes when it has stopped growing */
async function settledBytes(group: BrowserGroup): Promise<number> {
  let bytes = await bytesHeldBy(group);
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; ) {
    await delay(CHECK_INTERVAL_MS);
    const next = await bytesHeldBy(group);
    if (next - bytes < STILL_BYTES) return next;
    bytes = next;
  }
  return bytes;
}

/** Continues one renderer. @returns true if the browser's processes grow with it */
async function growsWith(pid: number, group: BrowserGroup): Promise<boolean> {
  const before = await settledBytes(group);
  const spent = await timeSpentBy(pid, group);
  signal(pid, "SIGCONT");
  for (const deadline = Date.now() + TURN_MS; Date.now() < deadline; ) {
    await delay(CHECK_INTERVAL_MS);
    if ((await bytesHeldBy(group)) - before > GROWTH_BYTES) return true;
    if ((await timeSpentBy(pid, group)) - spent > TURN_SPENT_MS) break;
  }
  return (await settledBytes(group)) - before > GROWTH_BYTES;
}

/** @param suspects renderers, the busiest first @returns null if the browser grows with none of them. All continue afterwards. */
export async function findFiller(suspects: readonly number[], group: BrowserGroup): Promise<number | null> {
  for (const pid of suspects) signal(pid, "SIGSTOP");
  try {
    for (const pid of suspects) if (await growsWith(pid, group)) return pid;
    return null;
  } finally {
    for (const pid of suspects) signal(pid, "SIGCONT");
  }
}
