/** Checks the state after a chaos test that kills instances or loses databases. */
import { expect } from "chai";
import type { ChaosOutcome } from "./chaos.js";
import { WAIT_LIMIT_MS } from "./unrest.js";

/** Allowed keys of ResponseCounts. EXECUTION_FAILED: the code of a run could not be read, or the process of the run was killed. */
const ALLOWED_ANSWERS = /^(20\d|503 OVERLOADED$|500 EXECUTION_FAILED$|unreachable$)/;

/** Allowed reasons of scheduled runs, and allowed states of scheduled runs without a reason. */
const ALLOWED_STATES_AND_REASONS = [
  "completed",
  "failed",
  "still running",
  "late by more than 60 s",
  "down at that time",
];

export function expectRunsAccountedFor(outcome: ChaosOutcome): void {
  expect(outcome.faults).to.deep.equal([]);
  const {
    missing,
    surplus,
    runCountsByState,
    unlogged,
    unknownRuns,
    crashes,
    readyWhileAway,
    alertDifferences,
    answers,
  } = outcome;
  expect({
    missing: missing.slice(0, 10),
    surplus,
    unlogged,
    unknownRuns,
    crashes,
    readyWhileAway,
    alertDifferences,
  }).to.deep.equal({
    missing: [],
    surplus: 0,
    unlogged: 0,
    unknownRuns: [],
    crashes: [],
    readyWhileAway: 0,
    alertDifferences: [],
  });
  expect(ALLOWED_STATES_AND_REASONS).to.include.members(Object.keys(runCountsByState));
  expect(runCountsByState).to.include.keys("completed");
  expect(Object.keys(answers).filter((answer) => !ALLOWED_ANSWERS.test(answer))).to.deep.equal([]);
}

/** Checks a test without kills: no run waits longer than WAIT_LIMIT_MS, and no instance is READY while a run has waited longer. */
export function expectRunsClaimed({ longestQueuedMs, readyWhileWaiting }: ChaosOutcome): void {
  expect(longestQueuedMs).to.be.below(WAIT_LIMIT_MS);
  expect(readyWhileWaiting).to.equal(0);
}
