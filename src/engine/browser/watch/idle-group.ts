/**
 * Linux control group (cgroup) with low CPU weight for busy renderers. All renderers in this group together get a
 * twentieth of the CPU time of any other group. Does nothing if the kernel or the account does not allow control
 * groups.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const CGROUP_MOUNT = "/sys/fs/cgroup";
/** File that lists the control groups of this process. Lines are `<number>:<controllers>:<path>`, or `0::<path>` in version 2. */
const SERVICE_GROUPS_FILE = "/proc/self/cgroup";
const GROUP_NAME_PREFIX = "svc-idle-";
/**
 * CPU weight of the group, a twentieth of the default. With a lower weight, a run on a busy machine would get no CPU
 * time.
 */
const IDLE_WEIGHT = "5";
const IDLE_SHARES = "51";

/** Returns the folder of the control group of this process that controls CPU time; null if there is none. */
function findServiceGroup(): string | null {
  for (const line of readFileSync(SERVICE_GROUPS_FILE, "utf8").split("\n")) {
    const [number, controllers = "", ...path] = line.split(":");
    const isVersion2 = number === "0" && controllers === "";
    if (!isVersion2 && !controllers.split(",").includes("cpu")) continue;
    const mounts = isVersion2 ? [CGROUP_MOUNT] : [join(CGROUP_MOUNT, "cpu"), join(CGROUP_MOUNT, "cpu,cpuacct")];
    const relative = path.join(":");
    // A path with ".." is outside of the part of the hierarchy that is mounted here, so this group has no folder.
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

/** Removes the idle groups of services that were killed. */
function removeOldGroups(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (name.startsWith(GROUP_NAME_PREFIX) && !existsSync(`/proc/${name.slice(GROUP_NAME_PREFIX.length)}`))
      removeGroup(join(parent, name));
  }
}

function removeGroup(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // The group still has processes, so the kernel does not remove it. The next start of the service removes it.
  }
}

/**
 * Creates the control group for busy renderers, and finds the control group of the service. Returns null if the system
 * does not allow it.
 */
function createGroups(): { idle: string; service: string } | null {
  try {
    const service = findServiceGroup();
    if (service === null) return null;
    removeOldGroups(service);
    const control = join(service, "cgroup.subtree_control");
    if (existsSync(control)) writeFileSync(control, "+cpu");
    const idle = join(service, `${GROUP_NAME_PREFIX}${process.pid}`);
    mkdirSync(idle, { recursive: true });
    process.once("exit", () => removeGroup(idle));
    if (existsSync(join(idle, "cpu.weight"))) writeFileSync(join(idle, "cpu.weight"), IDLE_WEIGHT);
    else writeFileSync(join(idle, "cpu.shares"), IDLE_SHARES);
    return { idle, service };
  } catch {
    return null;
  }
}

/**
 * Folders of the control groups for busy renderers and for the service; null if the system has none, undefined before
 * the first use.
 */
let controlGroups: ReturnType<typeof createGroups> | undefined;

/**
 * Resolves when all queued moves of processes between control groups have ended. Moves are asynchronous, because one
 * may take the kernel hundreds of milliseconds.
 */
let lastMove: Promise<unknown> = Promise.resolve();

async function moveProcessTo(group: "idle" | "service", pid: number): Promise<boolean> {
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
 * Moves the process to the control group with low CPU weight. Resolves with false if there is no such group, or if the
 * process has ended.
 */
export const moveToIdleGroup = (pid: number): Promise<boolean> => moveProcessTo("idle", pid);

/** Moves the process back to the control group of this service. */
export const moveToServiceGroup = (pid: number): Promise<boolean> => moveProcessTo("service", pid);
