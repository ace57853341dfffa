/** Reads from the system if another process runs, when it started, and its working folder. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const HAS_PROC = existsSync("/proc/self/stat");
const POLL_MS = 20;

/** Fields of /proc/<pid>/stat from the third one on. The second field, the command, may contain spaces and brackets. */
function readStatFields(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** True if the process runs. False for a zombie, which has exited and holds no resources. */
export function isProcessAlive(pid: number): boolean {
  if (HAS_PROC) {
    const state = readStatFields(pid)?.[0];
    return state !== undefined && state !== "Z" && state !== "X";
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Returns the start time of a process in clock ticks since boot, which differs for two processes with the same PID; null without /proc. */
export function readProcessStartTicks(pid: number): string | null {
  return readStatFields(pid)?.[19] ?? null;
}

/**
 * True if the process is a PostgreSQL server whose working directory is `folder` (a path without symbolic links). Without /proc, true if
 * the command of the process contains `folder`.
 */
export function isPostmasterWithDataFolder(pid: number, folder: string): boolean {
  if (!isProcessAlive(pid)) return false;
  try {
    if (!HAS_PROC)
      return execFileSync("ps", ["-p", String(pid), "-o", "command="], { encoding: "utf8" }).includes(folder);
    const program = basename(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ""));
    return program === "postgres" && readlinkSync(`/proc/${pid}/cwd`) === folder;
  } catch {
    return false;
  }
}

/** True if the process ends within `limitMs`. Polls, because the kernel notifies only the parent of a process. */
export async function waitForProcessEnd(pid: number, limitMs: number): Promise<boolean> {
  for (let waited = 0; isProcessAlive(pid); waited += POLL_MS) {
    if (waited >= limitMs) return false;
    await delay(POLL_MS);
  }
  return true;
}
