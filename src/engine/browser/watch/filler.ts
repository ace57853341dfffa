/**
 * Finds the renderer that fills a browser's own processes, which hold what all runs have stored there and say of nothing whose it
 * is: those that may be it are paused, then one after the other goes on for a moment, until what the browser holds grows with one of them.
 */
import { setTimeout as delay } from "node:timers/promises";
import { residentBytesOf, signal, usageOf } from "./processes.js";

/** Between two looks. */
const LOOK_MS = 20;
/** What was on its way when all were paused has arrived when nothing more comes, or after so long. */
const SETTLE_MS = 500;
/** What one of them is given to show itself: so much processor time, or so long. */
const TURN_SPENT_MS = 40;
const TURN_MS = 250;
const STILL_BYTES = 1024 * 1024;
const GROWTH_BYTES = 6 * 1024 * 1024;

interface Group {
  id: number;
  own: readonly number[];
}

const heldBy = ({ own, id }: Group) => residentBytesOf(own, id);
const spentBy = async (pid: number, { id }: Group) => (await usageOf(pid, id))?.spent ?? 0;

/** @returns what the browser's own processes hold when that has stopped growing */
async function settled(group: Group): Promise<number> {
  let held = await heldBy(group);
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; ) {
    await delay(LOOK_MS);
    const next = await heldBy(group);
    if (next - held < STILL_BYTES) return next;
    held = next;
  }
  return held;
}

/** Lets one of them go on. @returns whether the browser's processes grew with it */
async function growsWith(pid: number, group: Group): Promise<boolean> {
  const before = await settled(group);
  const spent = await spentBy(pid, group);
  signal(pid, "SIGCONT");
  for (const deadline = Date.now() + TURN_MS; Date.now() < deadline; ) {
    await delay(LOOK_MS);
    if ((await heldBy(group)) - before > GROWTH_BYTES) return true;
    if ((await spentBy(pid, group)) - spent > TURN_SPENT_MS) break;
  }
  return (await settled(group)) - before > GROWTH_BYTES;
}

/** @returns the one; null when the browser grows with none of them. All go on. */
export async function findFiller(busiestFirst: readonly number[], group: Group): Promise<number | null> {
  for (const pid of busiestFirst) signal(pid, "SIGSTOP");
  try {
    for (const pid of busiestFirst) if (await growsWith(pid, group)) return pid;
    return null;
  } finally {
    for (const pid of busiestFirst) signal(pid, "SIGCONT");
  }
}
