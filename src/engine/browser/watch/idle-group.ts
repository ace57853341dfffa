/**
 * A control group of the kernel in which processes compute where hardly anybody else wants to: far behind any priority, for their
 * threads weigh a twentieth together, however many they are. Where the kernel or the account gives none, nobody is put there. Knows pids.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const MOUNTS = "/proc/self/mountinfo";
const OWN_GROUPS = "/proc/self/cgroup";
const PREFIX = "svc-idle-";
/** A twentieth of what any other group has. Less, or the kernel's idle group, would starve a run on a machine that is never idle. */
const WEIGHT = "5";
const SHARES = "51";

/** The path of this process's group; lines are `<number>:<controllers, comma-separated>:<path>`, the second version's `0::<path>`. */
function pathOf(groups: string, type: string): string | undefined {
  const lines = groups.split("\n").map((line) => line.split(":"));
  const found = lines.find(([number, controllers]) =>
    type === "cgroup2" ? number === "0" && controllers === "" : controllers?.split(",").includes("cpu"),
  );
  return found?.slice(2).join(":");
}

/** Where this process stands in the hierarchy of groups that divides processor time; null where there is none. */
function ownGroup(): string | null {
  for (const line of readFileSync(MOUNTS, "utf8").split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "", mount = ""] = before.split(" ");
    const [type = "", , options = ""] = after.split(" ");
    const divides = type === "cgroup2" || (type === "cgroup" && options.split(",").includes("cpu"));
    if (!divides) continue;
    const path = pathOf(readFileSync(OWN_GROUPS, "utf8"), type);
    if (path === undefined) continue;
    const group = join(mount, path.startsWith(root) ? path.slice(root.length) : path);
    if (existsSync(join(group, "cgroup.procs")) && hasProcessorTime(group, type)) return group;
  }
  return null;
}

/** Of the second version's groups, those that may hand processor time on. */
function hasProcessorTime(group: string, type: string): boolean {
  return type === "cgroup" || readFileSync(join(group, "cgroup.controllers"), "utf8").split(/\s/).includes("cpu");
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** What services left that were killed. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) remove(join(parent, name));
  }
}

function remove(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // Its processes are still dying: the next start finds it.
  }
}

function make(): { group: string; parent: string } | null {
  try {
    const parent = ownGroup();
    if (parent === null) return null;
    sweep(parent);
    const control = join(parent, "cgroup.subtree_control");
    if (existsSync(control)) writeFileSync(control, "+cpu");
    const group = join(parent, `${PREFIX}${process.pid}`);
    mkdirSync(group, { recursive: true });
    if (existsSync(join(group, "cpu.weight"))) writeFileSync(join(group, "cpu.weight"), WEIGHT);
    else writeFileSync(join(group, "cpu.shares"), SHARES);
    return { group, parent };
  } catch {
    return null;
  }
}

/** One for the whole process: made when it is first needed, for as long as the process lives. */
let made: ReturnType<typeof make> | undefined;

/** Moves one after the other: the kernel may take hundreds of milliseconds for one, in which nothing here may stand still. */
let moves: Promise<unknown> = Promise.resolve();

async function moveTo(group: string, pid: number): Promise<boolean> {
  const move = moves.then(() =>
    writeFile(join(group, "cgroup.procs"), String(pid)).then(
      () => true,
      () => false,
    ),
  );
  moves = move;
  return move;
}

function groups(): ReturnType<typeof make> {
  if (made === undefined) {
    made = make();
    const { group } = made ?? {};
    if (group !== undefined) process.once("exit", () => remove(group));
  }
  return made;
}

/** Puts the process there. @returns false where there is no such group, or the process is gone */
export async function putIdle(pid: number): Promise<boolean> {
  const found = groups();
  return found !== null && moveTo(found.group, pid);
}

/** Puts it back among all others. */
export async function takeFromIdle(pid: number): Promise<void> {
  const found = groups();
  if (found !== null) await moveTo(found.parent, pid);
}
