/** Checks the outcome of `cutDatabaseConnections`. The outcome must be the same for any number of cuts. */
import { expect } from "chai";
import type { CutsOutcome } from "./database-cuts.js";

/** Keys of ResponseCounts that the test allows. EXECUTION_FAILED is the status of a run whose code or settings could not be read. */
const ALLOWED_ANSWERS = /^(20\d|503 OVERLOADED$|500 EXECUTION_FAILED$)/;

/** Text that a healthy service prints to standard error when it starts. */
const START_GREETING = /^\nSvc App Actions is up\.\n\n(?: {2}\S.*\n)+\n/;

export function expectServiceUnharmed(outcome: CutsOutcome): void {
  const {
    ended,
    stderr,
    answers,
    runCountsByState,
    unknownRuns,
    unlogged,
    openTransactionsAndLocks,
    withoutRetryAfter,
    after,
  } = outcome;
  expect({ ended, stderr: stderr.replace(START_GREETING, "") }).to.deep.equal({ ended: null, stderr: "" });
  expect(Object.keys(answers).filter((answer) => !ALLOWED_ANSWERS.test(answer))).to.deep.equal([]);
  expect({ unknownRuns, unlogged, openTransactionsAndLocks, withoutRetryAfter }).to.deep.equal({
    unknownRuns: [],
    unlogged: 0,
    openTransactionsAndLocks: 0,
    withoutRetryAfter: 0,
  });
  expect(runCountsByState).to.include.keys("completed");
  expect(after).to.equal(1);
}
