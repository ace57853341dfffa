/** Checks in /proc that every process of a browser is sandboxed. Does not trust what the browser itself reports. */
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";
import { listGroupMembers } from "../watch/processes.js";

export interface ProcessSandboxState {
  pid: number;
  parent: number;
  /** `browser`, `renderer`, `gpu-process`, or the service of a utility process. */
  kind: string;
  /** Mode of seccomp, the filter of system calls. 2 means that a filter checks every call. */
  seccompMode: number;
  noNewPrivileges: boolean;
  ownUserNamespace: boolean;
  uid: number;
  /** True if the process is sandboxed, or if its kind never runs code of actions (TRUSTED_KINDS). */
  contained: boolean;
}

export interface BrowserSandboxState {
  processes: readonly ProcessSandboxState[];
  sandboxed: boolean;
}

/** These kinds run only Chromium's own code, and need no sandbox. All other processes need a seccomp filter. */
const TRUSTED_KINDS = ["browser", "zygote", "broker", "network.mojom.NetworkService"];

/** On a busy machine, new processes take long to enter their sandbox. */
const SANDBOX_TIMEOUT_MS = 3_000;
const CHECK_INTERVAL_MS = 50;

function readStatusField(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? -1);
}

function sharesUserNamespace(pid: number): boolean {
  return readlinkSync(`/proc/${pid}/ns/user`) === readlinkSync("/proc/self/ns/user");
}

/** The main process, and a script that starts it, have no type on their command line. Other processes without a type are unknown. */
function getProcessKind(commandLine: string, pid: number, parent: number, group: number): string {
  const type = /[\0 ]--type=([^\0 ]*)/.exec(commandLine)?.[1];
  if (type === "utility") return /[\0 ]--utility-sub-type=([^\0 ]*)/.exec(commandLine)?.[1] ?? type;
  if (type !== undefined) return type;
  return pid === group || parent === group ? "browser" : "unknown";
}

export function readProcessSandboxStates(group: number): ProcessSandboxState[] {
  return listGroupMembers(group).flatMap(({ pid, parent, commandLine }) => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const kind = getProcessKind(commandLine, pid, parent, group);
      const seccompMode = readStatusField(status, "Seccomp");
      const ownUserNamespace = !sharesUserNamespace(pid);
      return {
        pid,
        parent,
        kind,
        seccompMode,
        noNewPrivileges: readStatusField(status, "NoNewPrivs") === 1,
        ownUserNamespace,
        uid: readStatusField(status, "Uid"),
        contained: TRUSTED_KINDS.includes(kind) || (seccompMode === 2 && (kind !== "renderer" || ownUserNamespace)),
      };
    } catch {
      // The process has ended.
      return [];
    }
  });
}

/** Waits up to SANDBOX_TIMEOUT_MS until all processes are sandboxed. Null for a remote browser, and on systems other than Linux. */
export async function waitForBrowserSandboxState({ pid }: Chromium): Promise<BrowserSandboxState | null> {
  if (pid === null || process.platform !== "linux") return null;
  const deadline = Date.now() + SANDBOX_TIMEOUT_MS;
  for (;;) {
    const processes = readProcessSandboxStates(pid);
    const sandboxed = processes.every(({ contained }) => contained);
    if (sandboxed || Date.now() > deadline) return { processes, sandboxed };
    await delay(CHECK_INTERVAL_MS);
  }
}
