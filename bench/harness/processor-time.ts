/** Processor time of a service's process families, read from /proc: Node, its Chromium, and a PostgreSQL server. */
import { readdirSync, readFileSync } from "node:fs";

/** Linux, on every architecture that Node supports. */
const TICK_MS = 10;

interface Spent {
  pid: number;
  parent: number;
  /** Milliseconds of this process. */
  own: number;
  /** Milliseconds of its children that have ended. */
  ended: number;
}

function readSpent(pid: number): Spent | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Fields from the third on; the second is a name in parentheses, which may contain spaces.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [user, system, childUser, childSystem] = fields.slice(11, 15) as [number, number, number, number];
    return { pid, parent: fields[1]!, own: (user + system) * TICK_MS, ended: (childUser + childSystem) * TICK_MS };
  } catch {
    return null;
  }
}

/** The process and all of its descendants. */
function familyOf(pid: number): Spent[] {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (readSpent(Number(name)) ?? []) : []));
  const pids = new Set([pid]);
  for (let size = 0; size !== pids.size; ) {
    size = pids.size;
    for (const one of all) if (pids.has(one.parent)) pids.add(one.pid);
  }
  return all.filter((one) => pids.has(one.pid));
}

/** Milliseconds since the start: of the service's own process, of its browsers, and of the database server. */
export function readProcessorTime(
  service: number,
  postmaster: number,
): Record<"Node" | "Chromium" | "PostgreSQL", number> {
  const sum = (of: readonly Spent[]) => of.reduce((total, { own, ended }) => total + own + ended, 0);
  const family = familyOf(service);
  const node = family.find(({ pid }) => pid === service);
  if (!node) throw new Error("the service has ended");
  // With an external database, a service starts only browsers.
  return { Node: node.own, Chromium: sum(family) - node.own, PostgreSQL: sum(familyOf(postmaster)) };
}
