/** The kernel's group for what computes behind everything. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { putIdle, takeFromIdle } from "../../../src/engine/browser/watch/idle-group.js";
import { createPriorities } from "../../../src/engine/browser/watch/priorities.js";
import { until } from "../../harness/until.js";

/** Some windows of the watch. */
const SETTLED_MS = 600;

describe("the group of processes that compute where no other wants to", () => {
  const groupOf = (pid: number) => readFileSync(`/proc/${pid}/cgroup`, "utf8");

  it("holds what is put there until it is taken out, and says when there is none", async () => {
    const child = spawn("sleep", ["60"]);
    try {
      const before = groupOf(child.pid!);
      const given = await putIdle(child.pid!);
      expect(groupOf(child.pid!).includes(`svc-idle-${process.pid}`)).to.equal(given);
      await takeFromIdle(child.pid!);
      expect(groupOf(child.pid!)).to.equal(before);
    } finally {
      child.kill();
      await once(child, "exit");
    }
    expect(await putIdle(child.pid!)).to.equal(false);
  });

  describe("takes a renderer that keeps a core busy", () => {
    const children: ChildProcess[] = [];
    afterEach(async () => {
      for (const child of children.splice(0)) {
        child.kill();
        await once(child, "exit");
      }
    });

    /** Looks at two renderers that have computed for such shares of a core, until the first one stands where it should. */
    async function lookUntil(shares: readonly [number, number], isIdle: boolean): Promise<void> {
      const priorities = createPriorities();
      const pids = shares.map(() => {
        const child = spawn("sleep", ["60"]);
        children.push(child);
        return child.pid!;
      });
      const begun = performance.now();
      await until(() => {
        const spent = performance.now() - begun;
        priorities.look(pids.map((pid, at) => ({ pid, spent: spent * shares[at]! })));
        return spent > SETTLED_MS && groupOf(pids[0]!).includes("svc-idle-") === isIdle;
      });
    }

    it("while another one computes as well", async () => {
      const probe = spawn("sleep", ["60"]);
      children.push(probe);
      // Some accounts and kernels have no such group.
      const hasGroup = await putIdle(probe.pid!);
      await lookUntil([1, 0.05], hasGroup);
    });

    it("not while it is the only one", () => lookUntil([1, 0], false));
  });
});
