/** Decides when an alert rule fires: pure functions compute the rule's next state from its last state and an event. */
import type { AlertInput } from "./alert-input.js";

/** A run of a live version that has ended, or a skipped tick. */
export interface EndedRun {
  id: number;
  actionId: number;
  state: "completed" | "failed" | "skipped";
  scheduled: boolean;
  /** Reason why the run was skipped. */
  reason: string | null;
  finishedAt: Date;
}

/** State of a rule for one action, or for the app as a whole. */
export interface AlertState {
  /** The latest outcomes, the newest at the end: "c" for a completed run, "f" for a failed one. */
  outcomes: string;
  lastSuccess: Date | null;
  firing: boolean;
  reason: string | null;
  runId: number | null;
}

/** State of the app and the service at the time of a check. */
export interface AlertMoment {
  now: Date;
  /** Time before which events do not count. */
  since: Date;
  /** True if a due tick has waited to be claimed for longer than a minute. */
  overdue: boolean;
  /** Age in milliseconds of the oldest queued run. */
  oldestMs: number;
}

type Rule = Pick<AlertInput, "condition" | "failures" | "of" | "minutes">;

export const NEW_STATE: AlertState = { outcomes: "", lastSuccess: null, firing: false, reason: null, runId: null };

const OVERDUE_REASON = "its schedule does not run: no process claims the due tick";
const MINUTE_MS = 60_000;

const toFiring = (state: AlertState, reason: string, runId: number | null): AlertState =>
  state.firing ? state : { ...state, firing: true, reason, runId };
const toResting = (state: AlertState): AlertState =>
  state.firing ? { ...state, firing: false, reason: null, runId: null } : state;

function stateAfterFailableRun(rule: Rule, state: AlertState, run: EndedRun): AlertState {
  const outcomes = (state.outcomes + (run.state === "completed" ? "c" : "f")).slice(-rule.of);
  const failedCount = outcomes.replaceAll("c", "").length;
  const next = { ...state, outcomes };
  if (failedCount < rule.failures) return toResting(next);
  const reason = rule.of === 1 ? "it failed" : `it failed ${failedCount} times in its last ${outcomes.length} runs`;
  return toFiring(next, reason, run.id);
}

/** Returns the rule's state after one more run. */
export function stateAfterRun(rule: Rule, state: AlertState, run: EndedRun): AlertState {
  switch (rule.condition) {
    case "failed":
      return run.state === "skipped" ? state : stateAfterFailableRun(rule, state, run);
    case "skipped":
      if (!run.scheduled) return state;
      return run.state === "skipped" ? toFiring(state, `a tick was skipped: ${run.reason}`, run.id) : toResting(state);
    case "silent":
      return run.state === "completed" ? toResting({ ...state, lastSuccess: run.finishedAt }) : state;
    default:
      return state;
  }
}

/** Returns the rule's state at a time at which no run has ended. */
export function stateAfterTime(rule: Rule, state: AlertState, present: AlertMoment): AlertState {
  const { now, since, overdue, oldestMs } = present;
  const limitMs = rule.minutes * MINUTE_MS;
  switch (rule.condition) {
    case "skipped":
      if (overdue) return toFiring(state, OVERDUE_REASON, null);
      return state.reason === OVERDUE_REASON ? toResting(state) : state;
    case "silent": {
      const silentMs = now.getTime() - Math.max(since.getTime(), (state.lastSuccess ?? since).getTime());
      if (silentMs >= limitMs) return toFiring(state, `it has not succeeded for ${rule.minutes} minutes`, null);
      if (overdue) return toFiring(state, OVERDUE_REASON, null);
      return state.reason === OVERDUE_REASON ? toResting(state) : state;
    }
    case "queued":
      if (oldestMs >= limitMs) return toFiring(state, `runs have waited for ${rule.minutes} minutes`, null);
      return toResting(state);
    default:
      return state;
  }
}
