/** Reads the CPU time and memory of a process and its children from `/proc`. */
import { readFile } from "node:fs/promises";

const TICKS_PER_SECOND = 100;

async function readChildPids(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return children.split(" ").filter(Boolean).map(Number);
}

/** Returns the CPU time of a process and its children in seconds; Infinity if the machine does not report it. */
export async function readProcessTreeCpuTime(pid: number): Promise<number> {
  try {
    const [stat, children] = await Promise.all([readFile(`/proc/${pid}/stat`, "latin1"), readChildPids(pid)]);
    // Four fields of `stat`: CPU time in user and kernel mode of the process, and of its children that have ended.
    const ticks = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 15);
    const childTimes = await Promise.all(children.map(readProcessTreeCpuTime));
    return [...childTimes, ...ticks.map((tickCount) => Number(tickCount) / TICKS_PER_SECOND)].reduce(
      (sum, seconds) => sum + seconds,
      0,
    );
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Returns the resident memory of a process and its children in bytes; 0 if the machine does not report it. */
export async function readProcessTreeMemory(pid: number): Promise<number> {
  try {
    const [status, children] = await Promise.all([readFile(`/proc/${pid}/status`, "utf8"), readChildPids(pid)]);
    const ownBytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
    const childSizes = await Promise.all(children.map(readProcessTreeMemory));
    return childSizes.reduce((sum, childBytes) => sum + childBytes, ownBytes);
  } catch {
    return 0;
  }
}
