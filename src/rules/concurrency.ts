/** Which runs of one key start, go or make way, by the limit of their action. Knows neither rows nor payloads. */
import type { ConcurrencyPolicy } from "../data/action-types.js";

/** A run of the key that has not ended. */
export interface ContendingRun {
  runId: number;
  policy: ConcurrencyPolicy;
  /** It has one of the places, and keeps it until it ends. */
  admitted: boolean;
}

/** What becomes of them; of all others nothing yet. */
export interface Verdict {
  admit: number[];
  skip: number[];
  /** Each with the one that it makes way for. */
  cancel: { runId: number; for: number }[];
}

/** @param runs in the order of their ids */
export function judgeRuns(limit: number, runs: readonly ContendingRun[]): Verdict {
  const verdict: Verdict = { admit: [], skip: [], cancel: [] };
  const displacing = runs.filter(({ policy }) => policy === "cancel").map(({ runId }) => runId);
  const newest = displacing.at(-1);
  /** A run with as many displacing runs after it as the limit has lost its slot. */
  const lastDisplaced = displacing.at(-limit) ?? Number.NEGATIVE_INFINITY;
  let underWay = runs.filter(({ admitted }) => admitted).length;
  for (const { runId, policy, admitted } of runs) {
    if (runId < lastDisplaced) verdict.cancel.push({ runId, for: newest! });
    else if (admitted) continue;
    else if (underWay < limit) {
      verdict.admit.push(runId);
      underWay += 1;
    } else if (policy === "skip") verdict.skip.push(runId);
  }
  return verdict;
}
