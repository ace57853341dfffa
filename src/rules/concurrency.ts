/** Decides about runs with the same concurrency key (a value in their payload): which start, wait, are skipped or are cancelled. */
import type { ConcurrencyPolicy } from "../data/action-types.js";

/** Unfinished run: it has started, or it waits because the concurrency limit is reached. */
export interface ContendingRun {
  runId: number;
  policy: ConcurrencyPolicy;
  /** True if the run was allowed to start. It counts for the concurrency limit until it ends. */
  admitted: boolean;
}

/** IDs of the runs to start (`admit`), to skip and to cancel. All other runs keep their state. */
export interface RunAdmissionDecision {
  admit: number[];
  skip: number[];
  /** `runId` is a run to cancel; `replacedBy` is the ID of the newer run that replaces it. */
  cancel: { runId: number; replacedBy: number }[];
}

/**
 * Decides which runs may start, are skipped or are cancelled.
 * @param runs runs with the same concurrency key, ordered by ID: those that may already start, and the oldest ones that wait for the limit
 */
export function decideRunAdmission(limit: number, runs: readonly ContendingRun[]): RunAdmissionDecision {
  const decision: RunAdmissionDecision = { admit: [], skip: [], cancel: [] };
  const cancellingIds = runs.filter(({ policy }) => policy === "cancel").map(({ runId }) => runId);
  const newestId = cancellingIds.at(-1);
  /** Runs with an ID below this one are cancelled, because at least `limit` newer runs have the policy `cancel`. */
  const oldestRetainedId = cancellingIds.at(-limit) ?? Number.NEGATIVE_INFINITY;
  let runningCount = runs.filter(({ admitted }) => admitted).length;
  for (const { runId, policy, admitted } of runs) {
    if (runId < oldestRetainedId) decision.cancel.push({ runId, replacedBy: newestId! });
    else if (admitted) continue;
    else if (runningCount < limit) {
      decision.admit.push(runId);
      runningCount += 1;
    } else if (policy === "skip") decision.skip.push(runId);
  }
  return decision;
}
