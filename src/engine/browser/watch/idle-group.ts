/**
 * A control group with low CPU weight for busy renderers: all of their threads together weigh a twentieth of any other group. Does nothing if
 * the kernel or the account does not allow control groups.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const CGROUP_MOUNT = "/sys/fs/cgroup";
/** File with the control groups of this process. A line is `<number>:<controllers, comma-separated>:<path>`, in version 2 `0::<path>`. */
const GROUPS_OF_SERVICE = "/proc/self/cgroup";
const PREFIX = "svc-idle-";
/** Weight of the group: a twentieth of the default. A lower one would starve a run on a machine that is never idle. */
const IDLE_WEIGHT = "5";
const IDLE_SHARES = "51";

/** Returns the folder of this process's group in the hierarchy that divides processor time; null if there is none. */
function findServiceGroup(): string | null {
  for (const line of readFileSync(GROUPS_OF_SERVICE, "utf8").split("\n")) {
    const [number, controllers = "", ...path] = line.split(":");
    const isVersion2 = number === "0" && controllers === "";
    if (!isVersion2 && !controllers.split(",").includes("cpu")) continue;
    const mounts = isVersion2 ? [CGROUP_MOUNT] : [join(CGROUP_MOUNT, "cpu"), join(CGROUP_MOUNT, "cpu,cpuacct")];
    const relative = path.join(":");
    // A path with ".." leads out of the namespace of the mount: the mount is then another group.
    if (relative.includes("..")) continue;
    // In a container, the mount itself may be the group, while the path is that of the host.
    const folders = mounts.flatMap((mount) => [join(mount, relative), mount]);
    const group = folders.find((folder) => existsSync(join(folder, "cgroup.procs")));
    if (group !== undefined && (!isVersion2 || dividesProcessorTime(group))) return group;
  }
  return null;
}

function dividesProcessorTime(group: string): boolean {
  return readFileSync(join(group, "cgroup.controllers"), "utf8").split(/\s/).includes("cpu");
}

/** Removes the groups of services that were killed. */
function removeOldGroups(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (name.startsWith(PREFIX) && !existsSync(`/proc/${name.slice(PREFIX.length)}`)) removeGroup(join(parent, name));
  }
}

function removeGroup(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // The processes of the group have not ended yet. The next start removes it.
  }
}

/** Creates the control group for busy renderers, and finds the service's own. Returns null if the system does not allow it. */
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

/** The two control groups, idle and service; undefined before the first use. */
let controlGroups: ReturnType<typeof createGroups> | undefined;

/** Last move. Moves are queued and asynchronous, because the kernel may take hundreds of milliseconds for one. */
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

/** Moves the process to the group. @returns false if there is no group, or the process has ended */
export const moveToIdleGroup = (pid: number): Promise<boolean> => moveTo("idle", pid);

/** Moves the process back to the group of this service. */
export const moveToServiceGroup = (pid: number): Promise<boolean> => moveTo("service", pid);
