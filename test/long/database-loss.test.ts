import { expect } from "chai";
import { runChaos } from "../harness/chaos.js";
import { expectRunsAccountedFor, expectRunsClaimed } from "../harness/chaos-verdict.js";
import { cutDatabaseConnections } from "../harness/database-cuts.js";
import { expectServiceUnharmed } from "../harness/database-cuts-verdict.js";
import { ALL_ROLES } from "../harness/fleet.js";
import type { DatabaseLoss } from "../harness/gateway.js";

const LOSS_SEQUENCE: readonly DatabaseLoss[] = ["SIGINT", "SIGKILL", "cut off", "SIGQUIT"];
const DATABASE_LOSSES = 100;
const CONNECTION_CUTS = 10_000;

describe("a database that is stopped fast, killed, stopped at once or disconnected, during ticks and requests", () => {
  for (const instances of [1, 3]) {
    it(`does not restart ${instances} ${instances === 1 ? "process" : "processes"}, and each tick and run is recorded`, async () => {
      const losses = Array.from({ length: DATABASE_LOSSES }, (_, at) => LOSS_SEQUENCE[at % LOSS_SEQUENCE.length]!);
      const outcome = await runChaos({
        roles: Array(instances).fill(ALL_ROLES),
        schedules: 40,
        callers: 16,
        rate: 15,
        kills: 0,
        losses,
      });
      const { expected, runCountsByState: runCounts, answers, longestQueuedMs, recoveryMs } = outcome;
      process.stdout.write(`${JSON.stringify({ expected, runCounts, answers, longestQueuedMs, recoveryMs })}\n`);
      expect(outcome.kills).to.equal(0);
      expectRunsAccountedFor(outcome);
      expectRunsClaimed(outcome);
    });
  }
});

describe("a service whose connections to the database are cut at random bytes ten thousand times", () => {
  it("survives, answers each request with its result, a failed run or 503, and logs every run once", async () => {
    const outcome = await cutDatabaseConnections(CONNECTION_CUTS);
    process.stdout.write(`${JSON.stringify(outcome)}\n`);
    expect(outcome.cuts).to.be.at.least(CONNECTION_CUTS);
    expectServiceUnharmed(outcome);
  });
});
