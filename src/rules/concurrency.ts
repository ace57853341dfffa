/** Decides which runs with the same concurrency key start, wait or are cancelled. */
import type { ConcurrencyPolicy } from "../data/action-types.js";

/** A run that has not ended, and that counts for the concurrency limit. */
export interface ContendingRun {
  runId: number;
  policy: ConcurrencyPolicy;
  /** True if the limit has already let the run start. It then counts until it ends. */
  admitted: boolean;
}

/** IDs of the runs to admit, skip and cancel. All other runs continue to wait. */
export interface AdmissionVerdict {
  admit: number[];
  skip: number[];
  /** Runs to cancel. `for` is the ID of the run that replaces the cancelled one. */
  cancel: { runId: number; for: number }[];
}

/** @param runs all unfinished runs with the same concurrency key, in the order of their IDs */
export function decideRuns(limit: number, runs: readonly ContendingRun[]): AdmissionVerdict {
  const verdict: AdmissionVerdict = { admit: [], skip: [], cancel: [] };
  const cancellingIds = runs.filter(({ policy }) => policy === "cancel").map(({ runId }) => runId);
  const newestId = cancellingIds.at(-1);
  /** ID below which runs are cancelled: at least `limit` newer runs have the policy `cancel`. */
  const lastDisplaced = cancellingIds.at(-limit) ?? Number.NEGATIVE_INFINITY;
  let runningCount = runs.filter(({ admitted }) => admitted).length;
  for (const { runId, policy, admitted } of runs) {
    if (runId < lastDisplaced) verdict.cancel.push({ runId, for: newestId! });
    else if (admitted) continue;
    else if (runningCount < limit) {
      verdict.admit.push(runId);
      runningCount += 1;
    } else if (policy === "skip") verdict.skip.push(runId);
  }
  return verdict;
}
