import { expect } from "chai";
import { chaos } from "../harness/chaos.js";
import { expectAccountedFor } from "../harness/chaos-verdict.js";
import type { Loss } from "../harness/gateway.js";

describe("three instances with 200 schedules that fire each second", () => {
  it("account for every tick once while one is killed each second and PostgreSQL is restarted ten times", async () => {
    const losses = Array<Loss>(10).fill("SIGINT");
    const outcome = await chaos({ instances: 3, schedules: 200, callers: 0, rate: 60, kills: 30, losses });
    const { expected, fates, kills, recoveryMs } = outcome;
    process.stdout.write(`${JSON.stringify({ expected, fates, kills, recoveryMs })}\n`);
    expect(expected).to.be.at.least(200 * 30);
    expect(kills).to.equal(30);
    expectAccountedFor(outcome);
    expect(recoveryMs).to.be.below(5_000);
  });
});
