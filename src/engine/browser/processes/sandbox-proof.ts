/** Checks in /proc that every process of a browser is sandboxed. Does not trust what the browser itself reports. */
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";
import { listProcesses } from "../watch/processes.js";

export interface ProcessSandboxState {
  pid: number;
  parent: number;
  /** `browser`, `renderer`, `gpu-process`, or the service of a utility process. */
  kind: string;
  /** True if the process is sandboxed, or if its kind never runs code of actions (TRUSTED_KINDS). */
  contained: boolean;
}

/** These kinds run only Chromium's own code, and need no sandbox. Others need a seccomp filter; renderers also a user namespace. */
const TRUSTED_KINDS = ["browser", "zygote", "broker", "network.mojom.NetworkService"];
/** Line in `/proc/<pid>/status` that shows that a seccomp filter checks every system call of the process. */
const SECCOMP_FILTER_LINE_PATTERN = /^Seccomp:\s+2$/m;

/** Long, because new processes need much time to enter their sandbox on a busy machine. */
const SANDBOX_TIMEOUT_MS = 3_000;
const CHECK_INTERVAL_MS = 50;

function hasOwnUserNamespace(pid: number): boolean {
  return readlinkSync(`/proc/${pid}/ns/user`) !== readlinkSync("/proc/self/ns/user");
}

/**
 * Returns the kind of a browser's process. The main process has no type on its command line. It leads the process group, or the script that
 * started it does. Other processes without a type are unknown.
 */
function getProcessKind(commandLine: string, pid: number, parent: number, group: number): string {
  const type = /[\0 ]--type=([^\0 ]*)/.exec(commandLine)?.[1];
  if (type === "utility") return /[\0 ]--utility-sub-type=([^\0 ]*)/.exec(commandLine)?.[1] ?? type;
  if (type !== undefined) return type;
  return pid === group || parent === group ? "browser" : "unknown";
}

export function readProcessSandboxStates(group: number): ProcessSandboxState[] {
  return listProcesses(group).flatMap(({ pid, parent, commandLine }) => {
    try {
      const kind = getProcessKind(commandLine, pid, parent, group);
      const isFiltered = SECCOMP_FILTER_LINE_PATTERN.test(readFileSync(`/proc/${pid}/status`, "utf8"));
      const isSandboxed = isFiltered && (kind !== "renderer" || hasOwnUserNamespace(pid));
      return { pid, parent, kind, contained: isSandboxed || TRUSTED_KINDS.includes(kind) };
    } catch {
      // The process has ended.
      return [];
    }
  });
}

/** Zygotes are processes that fork renderers. Only children of the main process count, because a new renderer first looks like a zygote. */
export function findZygotePids(processes: readonly Pick<ProcessSandboxState, "pid" | "parent" | "kind">[]): number[] {
  const mainPids = new Set(processes.filter(({ kind }) => kind === "browser").map(({ pid }) => pid));
  return processes.filter(({ kind, parent }) => kind === "zygote" && mainPids.has(parent)).map(({ pid }) => pid);
}

/** Waits up to SANDBOX_TIMEOUT_MS until all processes are sandboxed. Returns their states; null for a remote browser, or without Linux. */
export async function waitForProcessSandboxStates({ pid }: Chromium): Promise<ProcessSandboxState[] | null> {
  if (pid === null || process.platform !== "linux") return null;
  const deadline = Date.now() + SANDBOX_TIMEOUT_MS;
  for (;;) {
    const states = readProcessSandboxStates(pid);
    if (states.every(({ contained }) => contained) || Date.now() > deadline) return states;
    await delay(CHECK_INTERVAL_MS);
  }
}
