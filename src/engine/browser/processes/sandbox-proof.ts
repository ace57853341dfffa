/** Reads from outside, in /proc, whether every process of a Chromium is contained. Believes nothing the browser says of itself. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";

export interface ProcessProof {
  pid: number;
  /** As its command line names it: `browser`, `renderer`, `gpu-process`, a utility by the service in it, or whatever else. */
  kind: string;
  /** 2: every system call passes a filter. */
  seccompMode: number;
  noNewPrivileges: boolean;
  /** True when the process lives in a user namespace other than this one's. */
  ownUserNamespace: boolean;
  uid: number;
  /** It is sandboxed, or of a kind that runs nobody's code. */
  contained: boolean;
}

export interface SandboxProof {
  /** All of the browser's, as they were when they were looked at. */
  processes: readonly ProcessProof[];
  sandboxed: boolean;
}

/**
 * What runs no code but Chromium's own and has no sandbox in any build of it: the browser itself, what forks and serves sandboxed
 * processes, and the network service, which in a headless build cannot have one. Every other process must have a filter.
 */
const NOBODYS_CODE = ["browser", "zygote", "broker", "network.mojom.NetworkService"];

/** A process takes its sandbox on while it starts, which takes longer where the machine is busy. */
const YOUNG_MS = 3_000;
const LOOK_AGAIN_MS = 50;

function field(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? -1);
}

async function sharesUsers(pid: number): Promise<boolean> {
  return (await readlink(`/proc/${pid}/ns/user`)) === (await readlink("/proc/self/ns/user"));
}

/** Without a type it is the browser itself, or the script that started it; anything else of that kind was slipped in. */
function kindOf(commandLine: string, pid: number, parent: number, group: number): string {
  const type = /[\0 ]--type=([^\0 ]*)/.exec(commandLine)?.[1];
  if (type === "utility") return /[\0 ]--utility-sub-type=([^\0 ]*)/.exec(commandLine)?.[1] ?? type;
  if (type !== undefined) return type;
  return pid === group || parent === group ? "browser" : "unknown";
}

/** @returns null when the process is of another group, or gone */
async function prove(pid: number, group: number): Promise<ProcessProof | null> {
  try {
    const [state, parent, leader] = (await readFile(`/proc/${pid}/stat`, "latin1")).replace(/^.*\) /s, "").split(" ");
    if (Number(leader) !== group || state === "Z") return null;
    const [commandLine, status] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, "latin1"),
      readFile(`/proc/${pid}/status`, "utf8"),
    ]);
    const kind = kindOf(commandLine, pid, Number(parent), group);
    const seccompMode = field(status, "Seccomp");
    const ownUserNamespace = !(await sharesUsers(pid));
    return {
      pid,
      kind,
      seccompMode,
      noNewPrivileges: field(status, "NoNewPrivs") === 1,
      ownUserNamespace,
      uid: field(status, "Uid"),
      contained: NOBODYS_CODE.includes(kind) || (seccompMode === 2 && (kind !== "renderer" || ownUserNamespace)),
    };
  } catch {
    return null;
  }
}

async function look(group: number): Promise<SandboxProof> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const processes = (await Promise.all(pids.map((pid) => prove(pid, group)))).filter((one) => one !== null);
  return { processes, sandboxed: processes.every(({ contained }) => contained) };
}

/** @returns null where there is no /proc to read (anything but Linux), or the browser is somebody else's */
export async function proveSandbox({ pid: group }: Chromium): Promise<SandboxProof | null> {
  if (group === null || process.platform !== "linux") return null;
  const deadline = Date.now() + YOUNG_MS;
  for (;;) {
    const proof = await look(group);
    if (proof.sandboxed || Date.now() > deadline) return proof;
    await delay(LOOK_AGAIN_MS);
  }
}
