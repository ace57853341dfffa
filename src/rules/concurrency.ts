/** Decides which runs of one key start, wait or are cancelled, by the concurrency limit of their action. */
import type { ConcurrencyPolicy } from "../data/action-types.js";

/** A run of the key that has not ended. */
export interface ContendingRun {
  runId: number;
  policy: ConcurrencyPolicy;
  /** True if it has a slot, which it keeps until it ends. */
  admitted: boolean;
}

/** Decisions about runs; all others continue to wait. */
export interface AdmissionVerdict {
  admit: number[];
  skip: number[];
  /** Cancelled runs, each with the run that replaces it. */
  cancel: { runId: number; for: number }[];
}

/** @param runs in the order of their ids */
export function decideRuns(limit: number, runs: readonly ContendingRun[]): AdmissionVerdict {
  const verdict: AdmissionVerdict = { admit: [], skip: [], cancel: [] };
  const cancellingIds = runs.filter(({ policy }) => policy === "cancel").map(({ runId }) => runId);
  const newestId = cancellingIds.at(-1);
  /** A run loses its slot if as many later runs as the limit replace others. */
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
