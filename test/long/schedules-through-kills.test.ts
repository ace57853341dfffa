import { expect } from "chai";
import { runChaos } from "../harness/chaos.js";
import { expectRunsAccountedFor } from "../harness/chaos-verdict.js";
import { ALL_ROLES } from "../harness/fleet.js";

describe("schedules and requests through kills and losses of the database", () => {
  it("have one row for each tick, one log entry for each run, and complete again", async () => {
    const losses = ["SIGINT", "cut off"] as const;
    const outcome = await runChaos({
      roles: Array(2).fill(ALL_ROLES),
      schedules: 20,
      callers: 4,
      rate: 60,
      kills: 4,
      losses,
    });
    expect(outcome.kills).to.equal(4);
    expect(outcome.expected).to.be.at.least(20 * 4);
    expectRunsAccountedFor(outcome);
  });
}).timeout(120_000);
