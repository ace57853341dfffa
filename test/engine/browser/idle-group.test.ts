/** The kernel's group for what computes behind everything. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { putIdle, takeFromIdle } from "../../../src/engine/browser/watch/idle-group.js";

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
});
