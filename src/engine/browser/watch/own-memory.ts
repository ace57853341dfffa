/**
 * Finds the renderer that fills a browser's own processes, which hold what all runs have stored there and say of nothing whose it
 * is: all renderers are paused, then one after the other goes on for a moment, until what the browser holds grows with one of them.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const PAGE_BYTES = 4_096;
const TICK_MS = 10;
/** Between two looks. */
const LOOK_MS = 20;
/** What was on its way when all were paused has arrived when nothing more comes, or after so long. */
const SETTLE_MS = 500;
/** What one of them is given to show itself: so much processor time, or so long. */
const TURN_SPENT_MS = 40;
const TURN_MS = 250;
const STILL_BYTES = 1024 * 1024;
const GROWTH_BYTES = 6 * 1024 * 1024;

export async function residentBytes(pid: number): Promise<number> {
  try {
    return Number((await readFile(`/proc/${pid}/statm`, "latin1")).split(" ")[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** Processor time in milliseconds; 0 when the process is gone. */
export async function spentMs(pid: number): Promise<number> {
  try {
    const fields = (await readFile(`/proc/${pid}/stat`, "latin1")).replace(/^.*\) /s, "").split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return 0;
  }
}

function signal(pid: number, name: "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It went by itself.
  }
}

async function heldBy(own: readonly number[]): Promise<number> {
  return (await Promise.all(own.map(residentBytes))).reduce((sum, bytes) => sum + bytes, 0);
}

async function settle(own: readonly number[]): Promise<number> {
  let held = await heldBy(own);
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; ) {
    await delay(LOOK_MS);
    const next = await heldBy(own);
    if (next - held < STILL_BYTES) return next;
    held = next;
  }
  return held;
}

/** Lets one of them go on. @returns whether the browser's processes grew with it */
async function growsWith(pid: number, own: readonly number[]): Promise<boolean> {
  const before = await settle(own);
  const spent = await spentMs(pid);
  signal(pid, "SIGCONT");
  for (const deadline = Date.now() + TURN_MS; Date.now() < deadline; ) {
    await delay(LOOK_MS);
    if ((await heldBy(own)) - before > GROWTH_BYTES) return true;
    if ((await spentMs(pid)) - spent > TURN_SPENT_MS) break;
  }
  return (await settle(own)) - before > GROWTH_BYTES;
}

/** @returns the one; null when the browser grows with none of them. All others go on. */
export async function findFiller(own: readonly number[], renderers: readonly number[]): Promise<number | null> {
  const spent = await Promise.all(renderers.map(spentMs));
  const order = renderers.map((pid, at) => ({ pid, spent: spent[at]! })).sort((a, b) => b.spent - a.spent);
  for (const { pid } of order) signal(pid, "SIGSTOP");
  try {
    for (const { pid } of order) if (await growsWith(pid, own)) return pid;
    return null;
  } finally {
    for (const { pid } of order) signal(pid, "SIGCONT");
  }
}
