/** Reads from outside, in /proc, whether Chromium's renderers really are sandboxed. Believes nothing the browser says of itself. */
import { readFile, readlink } from "node:fs/promises";
import type { Chromium } from "./chromium.js";

export interface SandboxProof {
  /** The process looked at: a renderer. */
  pid: number;
  /** 2: every system call passes a filter. */
  seccompMode: number;
  noNewPrivileges: boolean;
  /** True when the renderer lives in a user namespace other than this process's. */
  ownUserNamespace: boolean;
  ownNetworkNamespace: boolean;
  uid: number;
  sandboxed: boolean;
}

/** Process ids by kind as the browser itself counts them: `browser`, `renderer`, `GPU`, `utility`. */
export async function processIds(chromium: Chromium, kind: string): Promise<number[]> {
  const { processInfo } = await chromium.connection.send("SystemInfo.getProcessInfo");
  return processInfo.filter((one) => one.type === kind).map((one) => one.id);
}

function field(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? -1);
}

async function ownNamespace(pid: number, kind: string): Promise<boolean> {
  return (await readlink(`/proc/${pid}/ns/${kind}`)) !== (await readlink(`/proc/self/ns/${kind}`));
}

/** @returns null where there is no /proc to read (anything but Linux), no renderer yet, or the browser is somebody else's */
export async function proveSandbox(chromium: Chromium): Promise<SandboxProof | null> {
  if (chromium.pid === null) return null;
  const [pid] = await processIds(chromium, "renderer");
  if (process.platform !== "linux" || pid === undefined) return null;
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const seccompMode = field(status, "Seccomp");
  const ownUserNamespace = await ownNamespace(pid, "user");
  return {
    pid,
    seccompMode,
    noNewPrivileges: field(status, "NoNewPrivs") === 1,
    ownUserNamespace,
    ownNetworkNamespace: await ownNamespace(pid, "net"),
    uid: field(status, "Uid"),
    sandboxed: seccompMode === 2 && ownUserNamespace,
  };
}
