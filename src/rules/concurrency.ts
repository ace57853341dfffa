/** Decides which runs with the same concurrency key start, wait or are cancelled. */
import type { ConcurrencyPolicy } from "../data/action-types.js";

/** A run with the key that has not ended. */
export interface ContendingRun {
  runId: number;
  policy: ConcurrencyPolicy;
  /** True if the run was admitted. It then counts until it ends. */
  admitted: boolean;
}

/** The runs to admit and to cancel; all others continue to wait. */
export interface AdmissionVerdict {
  admit: number[];
  skip: number[];
  /** Runs to cancel, each with the run that replaces it. */
  cancel: { runId: number; for: number }[];
}

/** @param runs runs with the key in the order of their IDs */
export function decideRuns(limit: number, runs: readonly ContendingRun[]): AdmissionVerdict {
  const verdict: AdmissionVerdict = { admit: [], skip: [], cancel: [] };
  const cancellingIds = runs.filter(({ policy }) => policy === "cancel").map(({ runId }) => runId);
  const newestId = cancellingIds.at(-1);
  /** A run is displaced if at least `limit` later runs replace others. */
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
