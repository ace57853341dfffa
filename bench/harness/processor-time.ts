/** Reads from /proc how much processor time the service's Node process, its Chromium and its PostgreSQL server have used. */
import { readdirSync, readFileSync } from "node:fs";

/** Length of a clock tick of /proc, the same on every architecture that Node supports on Linux. */
const CLOCK_TICK_MS = 10;

interface ProcessUsage {
  pid: number;
  parent: number;
  /** Processor time of the process itself, in milliseconds. */
  ownMs: number;
  /** Processor time of its child processes that have ended, in milliseconds. */
  endedChildrenMs: number;
}

function readProcessUsage(pid: number): ProcessUsage | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Splits only the text after the process name, because the name (in parentheses) may contain spaces.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [user, system, childUser, childSystem] = fields.slice(11, 15) as [number, number, number, number];
    return {
      pid,
      parent: fields[1]!,
      ownMs: (user + system) * CLOCK_TICK_MS,
      endedChildrenMs: (childUser + childSystem) * CLOCK_TICK_MS,
    };
  } catch {
    return null;
  }
}

function readProcessFamily(pid: number): ProcessUsage[] {
  const all = readdirSync("/proc").flatMap((name) =>
    /^\d+$/.test(name) ? (readProcessUsage(Number(name)) ?? []) : [],
  );
  const pids = new Set([pid]);
  for (let size = 0; size !== pids.size; ) {
    size = pids.size;
    for (const usage of all) if (pids.has(usage.parent)) pids.add(usage.pid);
  }
  return all.filter((usage) => pids.has(usage.pid));
}

/**
 * Returns the milliseconds of processor time that each of these has used since its start: the service's Node process, its browsers, and the
 * database server.
 */
export function readProcessorTime(
  service: number,
  postmaster: number,
): Record<"Node" | "Chromium" | "PostgreSQL", number> {
  const sum = (usages: readonly ProcessUsage[]) =>
    usages.reduce((total, { ownMs, endedChildrenMs }) => total + ownMs + endedChildrenMs, 0);
  const serviceProcesses = readProcessFamily(service);
  const node = serviceProcesses.find(({ pid }) => pid === service);
  if (!node) throw new Error("the service's process has exited");
  // The database is external here, so the service's child processes are browsers only.
  return {
    Node: node.ownMs,
    Chromium: sum(serviceProcesses) - node.ownMs,
    PostgreSQL: sum(readProcessFamily(postmaster)),
  };
}
