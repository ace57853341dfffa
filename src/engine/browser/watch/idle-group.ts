/**
 * Linux control group with low CPU weight for busy renderers. All renderers in the group together get a twentieth of
 * the CPU time of any other group. Does nothing if the kernel or the account does not allow control groups.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const CGROUP_MOUNT = "/sys/fs/cgroup";
/** File that lists the control groups of this process. Lines are `<number>:<controllers>:<path>`, or `0::<path>` in version 2. */
const SERVICE_GROUPS_FILE = "/proc/self/cgroup";
const PREFIX = "svc-idle-";
/** CPU weight of the group: a twentieth of the default. With less, a run on a busy machine would get no CPU time. */
const IDLE_WEIGHT = "5";
const IDLE_SHARES = "51";

/** Returns the folder of this process's control group that controls CPU time; null if there is none. */
function findServiceGroup(): string | null {
  for (const line of readFileSync(SERVICE_GROUPS_FILE, "utf8").split("\n")) {
    const [number, controllers = "", ...path] = line.split(":");
    const isVersion2 = number === "0" && controllers === "";
    if (!isVersion2 && !controllers.split(",").includes("cpu")) continue;
    const mounts = isVersion2 ? [CGROUP_MOUNT] : [join(CGROUP_MOUNT, "cpu"), join(CGROUP_MOUNT, "cpu,cpuacct")];
    const relative = path.join(":");
    // A path with ".." is outside of the mounted hierarchy, so the mount has no folder of this group.
    if (relative.includes("..")) continue;
    // In a container, the mount itself may be the group of this process, although the path in the file is that on the
    // host.
    const folders = mounts.flatMap((mount) => [join(mount, relative), mount]);
    const group = folders.find((folder) => existsSync(join(folder, "cgroup.procs")));
    if (group !== undefined && (!isVersion2 || hasCpuWeight(group))) return group;
  }
  return null;
}

function hasCpuWeight(group: string): boolean {
  return readFileSync(join(group, "cgroup.controllers"), "utf8").split(/\s/).includes("cpu");
}

/** Removes the control groups of services that were killed. */
function removeOldGroups(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (name.startsWith(PREFIX) && !existsSync(`/proc/${name.slice(PREFIX.length)}`)) removeGroup(join(parent, name));
  }
}

function removeGroup(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // The group still has processes. The next start removes the group.
  }
}

/**
 * Creates the control group for busy renderers, and finds the group of the service. Returns null if the system does not
 * allow it.
 */
function createGroups(): { idle: string; service: string } | null {
  try {
    const service = findServiceGroup();
    if (service === null) return null;
    removeOldGroups(service);
    const control = join(service, "cgroup.subtree_control");
    if (existsSync(control)) writeFileSync(control, "+cpu");
    const idle = join(service, `${PREFIX}${process.pid}`);
    mkdirSync(idle, { recursive: true });
    process.once("exit", () => removeGroup(idle));
    if (existsSync(join(idle, "cpu.weight"))) writeFileSync(join(idle, "cpu.weight"), IDLE_WEIGHT);
    else writeFileSync(join(idle, "cpu.shares"), IDLE_SHARES);
    return { idle, service };
  } catch {
    return null;
  }
}

/** Folders of the two control groups; null if the system has none, undefined before the first use. */
let controlGroups: ReturnType<typeof createGroups> | undefined;

/**
 * Resolves after the last queued move of a process to a control group. Moves are asynchronous, because one may take the
 * kernel hundreds of milliseconds.
 */
let lastMove: Promise<unknown> = Promise.resolve();

async function moveTo(group: "idle" | "service", pid: number): Promise<boolean> {
  if (controlGroups === undefined) controlGroups = createGroups();
  if (controlGroups === null) return false;
  const file = join(controlGroups[group], "cgroup.procs");
  const move = lastMove.then(() =>
    writeFile(file, String(pid)).then(
      () => true,
      () => false,
    ),
  );
  lastMove = move;
  return move;
}

/**
 * Moves the process to the group with low CPU weight. Resolves with false if there is no such group, or the process has
 * ended.
 */
export const moveToIdleGroup = (pid: number): Promise<boolean> => moveTo("idle", pid);

/** Moves the process back to the group of this service. */
export const moveToServiceGroup = (pid: number): Promise<boolean> => moveTo("service", pid);
