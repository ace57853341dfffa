/**
 * Kills processes of a fleet, and makes its database unavailable. The first test kills one process each second for half a minute. The
 * second one kills at random for CHAOS_MINUTES (30 by default).
 */
import { expect } from "chai";
import { startAlertHook } from "../harness/alert-hook.js";
import { runChaos } from "../harness/chaos.js";
import { expectRunsAccountedFor } from "../harness/chaos-verdict.js";
import { ALL_ROLES } from "../harness/fleet.js";
import type { DatabaseLoss } from "../harness/gateway.js";
import { WAIT_LIMIT_MS } from "../harness/unrest.js";

describe("three instances with 200 schedules that fire each second", () => {
  it("have one row for every tick while one is killed each second and PostgreSQL is restarted ten times", async () => {
    const losses = Array<DatabaseLoss>(10).fill("SIGINT");
    const outcome = await runChaos({
      roles: Array(3).fill(ALL_ROLES),
      schedules: 200,
      callers: 0,
      rate: 60,
      kills: 30,
      losses,
    });
    const { expected, runCountsByState: runCounts, kills, recoveryMs } = outcome;
    process.stdout.write(`${JSON.stringify({ expected, runCounts, kills, recoveryMs })}\n`);
    expect(expected).to.be.at.least(200 * 30);
    expect(kills).to.equal(30);
    expectRunsAccountedFor(outcome);
    expect(recoveryMs).to.be.below(5_000);
  });
});

const MINUTES = Number(process.env["CHAOS_MINUTES"] ?? 30);
/** Average time in seconds between two kills. */
const SECONDS_PER_KILL = 5;
/** Average time in seconds between two losses of the database. */
const SECONDS_PER_LOSS = 25;
const DATABASE_LOSSES: DatabaseLoss[] = ["SIGINT", "failed over", "SIGQUIT", "cut off", "SIGKILL"];

describe(`three API processes, two schedulers and three runners under load, for ${MINUTES} minutes`, function () {
  this.timeout(MINUTES * 60_000 + 1_200_000);

  it("lose nothing and do nothing twice while they, their browsers and PostgreSQL are killed at random", async () => {
    const hook = await startAlertHook();
    const outcome = await runChaos({
      roles: ["api", "api", "api", "scheduler", "scheduler", "runner", "runner", "runner"],
      schedules: 10,
      callers: 6,
      rate: 60,
      kills: Math.round((MINUTES * 60) / SECONDS_PER_KILL),
      losses: Array.from(
        { length: Math.round((MINUTES * 60) / SECONDS_PER_LOSS) },
        (_, n) => DATABASE_LOSSES[n % DATABASE_LOSSES.length]!,
      ),
      pace: {
        kill: [0, 2_000 * SECONDS_PER_KILL],
        loss: [500 * SECONDS_PER_LOSS, 1_500 * SECONDS_PER_LOSS],
        browserEvery: 3,
      },
      hook,
    });
    await hook.stop();
    const { expected, runCountsByState: runCounts, kills, answers, recoveryMs, longestQueuedMs } = outcome;
    const figures = {
      expected,
      runCounts,
      kills,
      answers,
      recoveryMs,
      longestQueuedMs,
      alerts: hook.receivedAlerts.length,
    };
    process.stdout.write(`      ${JSON.stringify(figures)}\n`);
    const { missing, surplus, unlogged, unknownRuns, crashes, readyWhileAway, alertDifferences: unreported } = outcome;
    const wrong = { missing: missing.length, surplus, unlogged, unknownRuns, crashes, readyWhileAway, unreported };
    process.stdout.write(`      ${JSON.stringify(wrong)}\n`);
    expectRunsAccountedFor(outcome);
    expect(hook.receivedAlerts.length).to.be.above(0);
    expect(longestQueuedMs).to.be.below(WAIT_LIMIT_MS);
    expect(recoveryMs).to.be.below(WAIT_LIMIT_MS);
  });
});
