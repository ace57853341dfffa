/** Tests the Linux control group into which the service moves processes with the lowest priority. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { moveToIdleGroup, moveToServiceGroup } from "../../../src/engine/browser/watch/idle-group.js";
import { RendererPriorities } from "../../../src/engine/browser/watch/priorities.js";
import { until } from "../../harness/until.js";

/** Duration in milliseconds of several windows in which the service measures processor time. */
const SETTLE_MS = 600;

describe("the group of processes with the lowest priority", () => {
  const groupOf = (pid: number) => readFileSync(`/proc/${pid}/cgroup`, "utf8");

  it("contains a process until it is removed, and reports if it does not exist", async () => {
    const child = spawn("sleep", ["60"]);
    try {
      const before = groupOf(child.pid!);
      const given = await moveToIdleGroup(child.pid!);
      expect(groupOf(child.pid!).includes(`svc-idle-${process.pid}`)).to.equal(given);
      await moveToServiceGroup(child.pid!);
      expect(groupOf(child.pid!)).to.equal(before);
    } finally {
      child.kill();
      await once(child, "exit");
    }
    expect(await moveToIdleGroup(child.pid!)).to.equal(false);
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
     * @param more number of additional threads of the first renderer from the second report on
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
        priorities.update(pids.map((pid, at) => ({ pid, cpuMs: spent * shares[at]!, threads })));
        return spent > SETTLE_MS && groupOf(pids[0]!).includes("svc-idle-") === isIdle;
      });
    }

    /** True if this account and kernel support control groups. */
    async function hasControlGroups(): Promise<boolean> {
      const probe = spawn("sleep", ["60"]);
      children.push(probe);
      return moveToIdleGroup(probe.pid!);
    }

    it("with a full core while another one also computes", async () =>
      reportSharesUntil([1, 0.05], await hasControlGroups()));

    it("with a fifth of a core if it has many more threads than before", async () =>
      reportSharesUntil([0.2, 0.05], await hasControlGroups(), 14));

    it("not with a fifth of a core and its usual threads", () => reportSharesUntil([0.2, 0.05], false));

    it("not with a full core while it is the only one", () => reportSharesUntil([1, 0], false));
  });
});
