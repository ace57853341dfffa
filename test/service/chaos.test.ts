import { expect } from "chai";
import { chaos } from "../harness/chaos.js";

describe("schedules through kills and restarts", () => {
  it("have one row for each tick, with its reason, and one log entry for each run", async () => {
    const outcome = await chaos({ instances: 2, schedules: 20, seconds: 5, restarts: 1 });
    const { expected, missing, surplus, fates, unlogged, kills, crashes } = outcome;
    expect(kills).to.equal(5);
    expect(expected).to.be.at.least(20 * 5);
    expect({ missing, surplus, unlogged, crashes }).to.deep.equal({ missing: [], surplus: 0, unlogged: 0, crashes: 0 });
    const known = ["completed", "failed", "still running", "late by more than 60 s", "down at that time"];
    expect(known).to.include.members(Object.keys(fates));
  });
}).timeout(120_000);
