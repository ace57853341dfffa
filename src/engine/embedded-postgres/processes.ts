/** Reads facts about other processes: if they run, since when, and in which folder. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const HAS_PROC = existsSync("/proc/self/stat");
const POLL_MS = 20;

/**
 * Returns the fields of /proc/<pid>/stat from the third one on. The second field, the command, is left out, because it
 * may contain spaces and brackets.
 */
function statFields(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** True if the process runs. False for zombies, which hold no resources. */
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

/** Returns the start time in clock ticks since boot, which distinguishes processes with the same PID; null without /proc. */
export function startTicks(pid: number): string | null {
  return statFields(pid)?.[19] ?? null;
}

/** True if `pid` is a PostgreSQL server with the data folder `folder` (a real path), by its working directory. */
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

/** Resolves with true if the process ends within `limitMs`. Polls, because the kernel notifies only the parent process. */
export async function waitUntilEnded(pid: number, limitMs: number): Promise<boolean> {
  for (let waited = 0; isAlive(pid); waited += POLL_MS) {
    if (waited >= limitMs) return false;
    await delay(POLL_MS);
  }
  return true;
}
