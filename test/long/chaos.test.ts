import { expect } from "chai";
import { chaos } from "../harness/chaos.js";

describe("three instances with 200 schedules that fire each second", () => {
  it("account for every tick once while one is killed each second and PostgreSQL is restarted ten times", async () => {
    const outcome = await chaos({ instances: 3, schedules: 200, seconds: 30, restarts: 10 });
    const { expected, missing, surplus, fates, unlogged, kills, crashes, recoveryMs } = outcome;
    process.stdout.write(`${JSON.stringify({ expected, fates, kills, recoveryMs })}\n`);
    expect(expected).to.be.at.least(200 * 30);
    expect(kills).to.equal(30);
    expect({ missing: missing.slice(0, 10), surplus, unlogged, crashes }).to.deep.equal({
      missing: [],
      surplus: 0,
      unlogged: 0,
      crashes: 0,
    });
    expect(Object.keys(fates)).to.include("completed");
    expect(recoveryMs).to.be.below(5_000);
  });
});
