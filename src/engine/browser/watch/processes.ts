/** Lists the processes that a browser reports, and reads their CPU time and memory from /proc. */
import { readdirSync, readFileSync } from "node:fs";
import type { Connection } from "puppeteer";

const PAGE_BYTES = 4_096;
const CLOCK_TICK_MS = 10;
const NETWORK_SERVICE = "network.mojom.NetworkService";

export interface BrowserProcess {
  pid: number;
  /** A renderer executes the code of pages. All other processes serve all pages. */
  isRenderer: boolean;
  isNetworkService: boolean;
}

export interface Usage {
  cpuMs: number;
  kernelMs: number;
  residentBytes: number;
  threads: number;
}

/** Waits for the browser's response without a time limit. */
export async function listBrowserProcesses(connection: Connection): Promise<BrowserProcess[]> {
  const { processInfo } = await connection.send("SystemInfo.getProcessInfo", undefined, { timeout: 0 });
  return processInfo.map(({ id, type }) => ({
    pid: id,
    isRenderer: type === "renderer",
    isNetworkService: type === NETWORK_SERVICE,
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
export function readBrowserProcessUsage(pid: number, group: number): Usage | null {
  try {
    const fields = readStatFields(`/proc/${pid}/stat`);
    if (Number(fields[2]) !== group) return null;
    const kernel = Number(fields[12]) * CLOCK_TICK_MS;
    const spent = Number(fields[11]) * CLOCK_TICK_MS + kernel;
    return {
      kernelMs: kernel,
      cpuMs: spent,
      residentBytes: Number(fields[21]) * PAGE_BYTES,
      threads: Number(fields[17]),
    };
  } catch {
    return null;
  }
}

function readThreadFields(path: string, readStat: typeof readStatFields): string[] | null {
  try {
    return readStat(path);
  } catch {
    return null;
  }
}

export interface SharedProcessLoad {
  cpuMs: number;
  /** True if a thread is running or waits for a CPU. */
  isAnyRunnable: boolean;
}

/** Lists all processes of the machine, so call it rarely. `readStat` is for tests. */
export function readSharedProcessLoad(group: number, readStat = readStatFields): SharedProcessLoad {
  const threads = { cpuMs: 0, isAnyRunnable: false };
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const [, , pgrp] = readStat(`/proc/${name}/stat`);
      if (Number(pgrp) !== group || readFileSync(`/proc/${name}/cmdline`, "latin1").includes("--type=renderer"))
        continue;
      for (const thread of readdirSync(`/proc/${name}/task`)) {
        const fields = readThreadFields(`/proc/${name}/task/${thread}/stat`, readStat);
        if (fields === null) continue;
        threads.cpuMs += (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_MS;
        threads.isAnyRunnable ||= fields[0] === "R";
      }
    } catch {
      // The process has ended.
    }
  }
  return threads;
}

export type MeasuredProcess = BrowserProcess & Usage;

export function measureProcesses(processes: readonly BrowserProcess[], group: number): MeasuredProcess[] {
  return processes.flatMap((process) => {
    const usage = readBrowserProcessUsage(process.pid, group);
    return usage === null ? [] : [{ ...process, ...usage }];
  });
}

export function signalProcess(pid: number, name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended.
  }
}
