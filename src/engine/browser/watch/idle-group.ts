/** Puts busy renderers into a Linux control group (cgroup) with low CPU weight, if the kernel and the account allow it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** All services in one control group share this child group. It still exists after they have ended. */
const IDLE_GROUP_NAME = "svc-idle";
/** CPU weight of all busy renderers together: a twentieth of the default, so that they still get CPU time on a busy machine. */
const IDLE_WEIGHT = "5";
/** The same weight for version 1 of control groups, where the weight is called `cpu.shares` and is 1,024 by default. */
const IDLE_SHARES = "51";

/**
 * Returns the folder of the control group that controls the CPU time of this process; null if there is none.
 * @param groupsFile its lines are `<number>:<controllers>:<path>`, or `0::<path>` in version 2
 */
function findServiceGroup(mount: string, groupsFile: string): string | null {
  for (const line of readFileSync(groupsFile, "utf8").split("\n")) {
    const [number, controllers = "", ...path] = line.split(":");
    const isVersion2 = number === "0" && controllers === "";
    if (!isVersion2 && !controllers.split(",").includes("cpu")) continue;
    const mounts = isVersion2 ? [mount] : [join(mount, "cpu"), join(mount, "cpu,cpuacct")];
    const relativePath = path.join(":");
    // A path with ".." is outside of the part of the hierarchy that is mounted here, so this group has no folder.
    if (relativePath.includes("..")) continue;
    // In a container, the file has the group's path on the host. Then the mount itself may be the group's folder.
    const folders = mounts.flatMap((folder) => [join(folder, relativePath), folder]);
    const group = folders.find((folder) => existsSync(join(folder, "cgroup.procs")));
    if (group !== undefined && (!isVersion2 || hasCpuWeight(group))) return group;
  }
  return null;
}

function hasCpuWeight(group: string): boolean {
  return readFileSync(join(group, "cgroup.controllers"), "utf8").split(/\s/).includes("cpu");
}

interface ControlGroups {
  idle: string;
  service: string;
}

function createControlGroups(mount: string, groupsFile: string): ControlGroups | null {
  try {
    const service = findServiceGroup(mount, groupsFile);
    if (service === null) return null;
    const controlFile = join(service, "cgroup.subtree_control");
    if (existsSync(controlFile)) writeFileSync(controlFile, "+cpu");
    const idle = join(service, IDLE_GROUP_NAME);
    mkdirSync(idle, { recursive: true });
    if (existsSync(join(idle, "cpu.weight"))) writeFileSync(join(idle, "cpu.weight"), IDLE_WEIGHT);
    else writeFileSync(join(idle, "cpu.shares"), IDLE_SHARES);
    return { idle, service };
  } catch {
    return null;
  }
}

export class IdleControlGroup {
  private groups: ControlGroups | null = null;
  /** The kernel may need hundreds of milliseconds for one move between groups, so moves run one after another. */
  private lastMove: Promise<unknown> = Promise.resolve();

  /** Only tests set the paths. */
  constructor(
    private readonly mount = "/sys/fs/cgroup",
    private readonly groupsFile = "/proc/self/cgroup",
  ) {}

  /** Resolves with false if there are no control groups, or if the kernel rejects the move (for example, the process has ended). */
  async moveProcess(pid: number, group: keyof ControlGroups): Promise<boolean> {
    this.groups ??= createControlGroups(this.mount, this.groupsFile);
    if (this.groups === null) return false;
    const file = join(this.groups[group], "cgroup.procs");
    const move = this.lastMove.then(() =>
      writeFile(file, String(pid)).then(
        () => true,
        () => false,
      ),
    );
    this.lastMove = move;
    return move;
  }
}

export const rendererIdleControlGroup = new IdleControlGroup();
