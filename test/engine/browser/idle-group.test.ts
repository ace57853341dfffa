/** Tests the Linux control group (cgroup) into which the service moves the processes with the lowest priority. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import {
  IdleControlGroup,
  rendererIdleControlGroup as idleGroup,
} from "../../../src/engine/browser/watch/idle-group.js";
import { RendererPriorities } from "../../../src/engine/browser/watch/priorities.js";
import { until } from "../../harness/until.js";

/** Minimum time in milliseconds for which the test reports processor use. Within this time, the service measures several times. */
const SETTLE_MS = 600;

describe("the group of processes with the lowest priority", () => {
  const groupOf = (pid: number) => readFileSync(`/proc/${pid}/cgroup`, "utf8");

  it("contains a process until it is removed, and reports if it does not exist", async () => {
    const child = spawn("sleep", ["60"]);
    try {
      const before = groupOf(child.pid!);
      const isMoved = await idleGroup.moveProcess(child.pid!, "idle");
      expect(groupOf(child.pid!).includes("svc-idle")).to.equal(isMoved);
      await idleGroup.moveProcess(child.pid!, "service");
      expect(groupOf(child.pid!)).to.equal(before);
    } finally {
      child.kill();
      await once(child, "exit");
    }
    expect(await idleGroup.moveProcess(child.pid!, "idle")).to.equal(false);
  });

  it("is created later if the system could not create it at first", async () => {
    const mount = mkdtempSync(join(tmpdir(), "svc-groups-"));
    const groupsFile = join(mount, "groups");
    const group = new IdleControlGroup(mount, groupsFile);
    const isMoved = () => group.moveProcess(7, "idle");
    try {
      expect(await isMoved()).to.equal(false);
      writeFileSync(groupsFile, "0::/\n");
      writeFileSync(join(mount, "cgroup.procs"), "");
      writeFileSync(join(mount, "cgroup.controllers"), "cpu memory\n");
      expect(await isMoved()).to.equal(true);
      expect(readFileSync(join(mount, "svc-idle", "cgroup.procs"), "utf8")).to.equal("7");
    } finally {
      rmSync(mount, { recursive: true });
    }
  });

  it("gets a renderer at the second attempt if the first one fails", async () => {
    const moves: unknown[] = [];
    const moveProcess = async (...move: unknown[]) => moves.push(move) > 1;
    const priorities = new RendererPriorities(() => [], { moveProcess });
    const startedAt = performance.now();
    await until(() => {
      const spent = performance.now() - startedAt;
      priorities.update([1, 2].map((pid) => ({ pid, cpuMs: pid === 1 ? spent : spent / 20, threads: 2, nice: 5 })));
      return spent > SETTLE_MS && moves.length > 1;
    });
    expect(moves).to.deep.equal([
      [1, "idle"],
      [1, "idle"],
    ]);
  });

  describe("gets a renderer that disturbs others", () => {
    const children: ChildProcess[] = [];
    afterEach(async () => {
      for (const child of children.splice(0)) {
        child.kill();
        await once(child, "exit");
      }
    });

    /**
     * Reports the processor use of two renderers, as shares of a core, until the first renderer is in the expected control group.
     * @param isIdle true if the idle group is expected
     * @param more number of additional threads that each renderer has from the second report on
     */
    async function reportSharesUntil(shares: readonly [number, number], isIdle: boolean, more = 0): Promise<void> {
      const priorities = new RendererPriorities();
      const pids = shares.map(() => {
        const child = spawn("sleep", ["60"]);
        children.push(child);
        return child.pid!;
      });
      const startedAt = performance.now();
      let looks = 0;
      await until(() => {
        const spent = performance.now() - startedAt;
        const threads = 10 + (looks++ === 0 ? 0 : more);
        priorities.update(pids.map((pid, at) => ({ pid, cpuMs: spent * shares[at]!, threads, nice: 5 })));
        return spent > SETTLE_MS && groupOf(pids[0]!).includes("svc-idle") === isIdle;
      });
    }

    async function hasControlGroups(): Promise<boolean> {
      const probe = spawn("sleep", ["60"]);
      children.push(probe);
      return idleGroup.moveProcess(probe.pid!, "idle");
    }

    it("with a full core while another one also computes", async () =>
      reportSharesUntil([1, 0.05], await hasControlGroups()));

    it("with a fifth of a core if it has many more threads than before", async () =>
      reportSharesUntil([0.2, 0.05], await hasControlGroups(), 14));

    it("not with a fifth of a core and its usual threads", () => reportSharesUntil([0.2, 0.05], false));

    it("not with a full core while it is the only one", () => reportSharesUntil([1, 0], false));
  });
});
