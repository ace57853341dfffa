/**
 * A control group with low CPU weight for busy renderers: all of their threads together weigh a twentieth of any other group. Does nothing if
 * the kernel or the account does not allow control groups.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const MOUNTS = "/proc/self/mountinfo";
const OWN_GROUPS = "/proc/self/cgroup";
const PREFIX = "svc-idle-";
/** A twentieth of the default weight. A lower one would starve a run on a machine that is never idle. */
const WEIGHT = "5";
const SHARES = "51";

/** Path of this process's group. Lines are `<number>:<controllers, comma-separated>:<path>`, in version 2 `0::<path>`. */
function pathOf(groups: string, type: string): string | undefined {
  const lines = groups.split("\n").map((line) => line.split(":"));
  const found = lines.find(([number, controllers]) =>
    type === "cgroup2" ? number === "0" && controllers === "" : controllers?.split(",").includes("cpu"),
  );
  return found?.slice(2).join(":");
}

/** Folder of this process's group in the hierarchy that divides processor time; null if there is none. */
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

/** True if the group can divide processor time. */
function hasProcessorTime(group: string, type: string): boolean {
  return type === "cgroup" || readFileSync(join(group, "cgroup.controllers"), "utf8").split(/\s/).includes("cpu");
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** Removes the groups of services that were killed. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) remove(join(parent, name));
  }
}

function remove(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // Its processes have not ended yet. The next start removes it.
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

/** The group of this process, created at first use. */
let made: ReturnType<typeof make> | undefined;

/** Moves are queued and asynchronous: the kernel may take hundreds of milliseconds for one. */
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

/** Moves the process to the group. @returns false if there is no group, or the process has ended */
export async function putIdle(pid: number): Promise<boolean> {
  const found = groups();
  return found !== null && moveTo(found.group, pid);
}

/** Moves the process back to the group of this service. */
export async function takeFromIdle(pid: number): Promise<void> {
  const found = groups();
  if (found !== null) await moveTo(found.parent, pid);
}
