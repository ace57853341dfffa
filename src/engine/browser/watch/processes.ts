/** Lists the processes that a browser reports, and reads their CPU time and memory from /proc. */
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import type { Connection } from "puppeteer";

const MEMORY_PAGE_BYTES = 4_096;
const CLOCK_TICK_MS = 10;
const NETWORK_SERVICE_TYPE = "network.mojom.NetworkService";

export interface BrowserProcess {
  pid: number;
  /** A renderer executes the code of pages. All other processes serve all pages. */
  isRenderer: boolean;
  isNetworkService: boolean;
}

export interface ProcessUsage {
  cpuMs: number;
  kernelMs: number;
  residentBytes: number;
  threads: number;
  /** Nice value of the main thread. */
  nice: number;
}

/** Waits for the browser's response without a time limit. */
export async function listBrowserProcesses(connection: Connection): Promise<BrowserProcess[]> {
  const { processInfo } = await connection.send("SystemInfo.getProcessInfo", undefined, { timeout: 0 });
  return processInfo.map(({ id, type }) => ({
    pid: id,
    isRenderer: type === "renderer",
    isNetworkService: type === NETWORK_SERVICE_TYPE,
  }));
}

/** Returns the fields of a `stat` file in /proc that follow the process name: state, parent, group, … */
export function readStatFields(path: string): string[] {
  // The read is synchronous, because /proc needs no disk, and an asynchronous read takes ten times as long.
  return readFileSync(path, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
}

/** Returns null if the process has ended, or if it is not in the process group (its ID was reused). */
export function readBrowserProcessUsage(pid: number, group: number): ProcessUsage | null {
  try {
    const fields = readStatFields(`/proc/${pid}/stat`);
    if (Number(fields[2]) !== group) return null;
    const kernelMs = Number(fields[12]) * CLOCK_TICK_MS;
    return {
      kernelMs,
      cpuMs: Number(fields[11]) * CLOCK_TICK_MS + kernelMs,
      residentBytes: Number(fields[21]) * MEMORY_PAGE_BYTES,
      threads: Number(fields[17]),
      nice: Number(fields[16]),
    };
  } catch {
    return null;
  }
}

/** True also for a zombie: it has exited, but its parent has not yet read its exit status. */
export function hasProcessEnded(pid: number, readStat = readStatFields): boolean {
  try {
    return readStat(`/proc/${pid}/stat`)[0] === "Z";
  } catch (error) {
    // Other errors, such as too many open files, do not show that the process has ended.
    return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

/** Reads all processes of the machine (with /proc), so call it rarely. Leaves out zombies. By default, returns those of all groups. */
export function listProcesses(group?: number): { pid: number; parent: number; commandLine: string }[] {
  const pids = existsSync("/proc") ? readdirSync("/proc").map(Number) : [];
  return pids.filter(Number.isInteger).flatMap((pid) => {
    try {
      const [state, parent, processGroup] = readStatFields(`/proc/${pid}/stat`);
      if ((group !== undefined && Number(processGroup) !== group) || state === "Z") return [];
      return [{ pid, parent: Number(parent), commandLine: readFileSync(`/proc/${pid}/cmdline`, "latin1") }];
    } catch {
      // The process has ended.
      return [];
    }
  });
}

/** True if a thread of these processes is running or waits for a CPU. `readStat` is for tests. */
export function isAnyThreadRunnable(pids: readonly number[], readStat = readStatFields): boolean {
  return globSync(pids.map((pid) => `/proc/${pid}/task/*/stat`)).some((path) => {
    try {
      return readStat(path)[0] === "R";
    } catch {
      // The thread has ended.
      return false;
    }
  });
}

export type MeasuredProcess = BrowserProcess & ProcessUsage;

export function measureProcesses(processes: readonly BrowserProcess[], group: number): MeasuredProcess[] {
  return processes.flatMap((process) => {
    const usage = readBrowserProcessUsage(process.pid, group);
    return usage === null ? [] : [{ ...process, ...usage }];
  });
}

/** A negative `pid` means the process group with this ID. */
export function signalProcess(pid: number, name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended, or belongs to another account.
  }
}
