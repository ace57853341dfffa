/** What can be known of another process: whether it lives, since when, and in which folder. Knows no lock and no cluster. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const HAS_PROC = existsSync("/proc/self/stat");
const POLL_MS = 20;

/** Fields of /proc/<pid>/stat from the third on; the second, the command, may itself hold blanks and brackets. */
function statFields(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** False for a zombie too: what nobody reaps holds nothing any more. */
export function isAlive(pid: number): boolean {
  if (HAS_PROC) {
    const state = statFields(pid)?.[0];
    return state !== undefined && state !== "Z" && state !== "X";
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Tells a process from a later one of the same number: clock ticks since boot, or null where there is no /proc. */
export function startTicks(pid: number): string | null {
  return statFields(pid)?.[19] ?? null;
}

/** Whether `pid` is a PostgreSQL server whose data folder is `folder` (a real path): it works inside that folder. */
export function isPostmasterIn(pid: number, folder: string): boolean {
  if (!isAlive(pid)) return false;
  try {
    if (!HAS_PROC)
      return execFileSync("ps", ["-p", String(pid), "-o", "command="], { encoding: "utf8" }).includes(folder);
    const program = basename(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ""));
    return program === "postgres" && readlinkSync(`/proc/${pid}/cwd`) === folder;
  } catch {
    return false;
  }
}

/** Resolves to whether the process ended within `limitMs`. Polls, because only a parent is told. */
export async function waitUntilGone(pid: number, limitMs: number): Promise<boolean> {
  for (let waited = 0; isAlive(pid); waited += POLL_MS) {
    if (waited >= limitMs) return false;
    await delay(POLL_MS);
  }
  return true;
}
