/** Decides when an alert fires. Pure functions compute the next state of an alert rule from its previous state and an event. */
import type { AlertRuleFields } from "./alert-input.js";

/** A run of an action's live version that has ended, or a planned run that the scheduler skipped. */
export interface EndedRun {
  id: number;
  actionId: number;
  state: "completed" | "failed" | "skipped";
  /** True if a schedule started the run or planned the skipped run. */
  scheduled: boolean;
  /** Reason why the scheduler skipped the run; null if the run was executed. */
  reason: string | null;
  finishedAt: Date;
}

/** State of an alert rule, for one action or the whole app. From this state, the rule decides if it fires. */
export interface AlertRuleState {
  /** Outcomes of the latest runs, the newest at the end: "c" for a completed run, "f" for a failed one. */
  outcomes: string;
  lastSuccess: Date | null;
  firing: boolean;
  /** Reason why the rule fires; null if it does not fire. */
  reason: string | null;
  /** ID of the run that made the rule fire; null if the rule does not fire, or if no run is the cause. */
  runId: number | null;
}

export interface AlertCheckInput {
  now: Date;
  /** Time of the alert rule's last change. The condition `silent` ignores the time before this change. */
  countedSince: Date;
  /** True if a planned run has been due for more than a minute, but no process has started it. */
  isTickOverdue: boolean;
  oldestQueuedMs: number;
}

type AlertRule = Pick<AlertRuleFields, "condition" | "failures" | "of" | "minutes">;

export const NEW_ALERT_STATE: AlertRuleState = {
  outcomes: "",
  lastSuccess: null,
  firing: false,
  reason: null,
  runId: null,
};

const OVERDUE_REASON = "its schedule does not run: no process claims the due tick";
const MINUTE_MS = 60_000;

const startFiring = (state: AlertRuleState, reason: string, runId: number | null): AlertRuleState =>
  state.firing ? state : { ...state, firing: true, reason, runId };
const stopFiring = (state: AlertRuleState): AlertRuleState =>
  state.firing ? { ...state, firing: false, reason: null, runId: null } : state;

function computeStateAfterExecutedRun(rule: AlertRule, state: AlertRuleState, run: EndedRun): AlertRuleState {
  const outcomes = (state.outcomes + (run.state === "completed" ? "c" : "f")).slice(-rule.of);
  const failedCount = outcomes.replaceAll("c", "").length;
  const next = { ...state, outcomes };
  if (failedCount < rule.failures) return stopFiring(next);
  const reason = rule.of === 1 ? "it failed" : `it failed ${failedCount} times in its last ${outcomes.length} runs`;
  return startFiring(next, reason, run.id);
}

export function computeAlertStateAfterRun(rule: AlertRule, state: AlertRuleState, run: EndedRun): AlertRuleState {
  switch (rule.condition) {
    case "failed":
      return run.state === "skipped" ? state : computeStateAfterExecutedRun(rule, state, run);
    case "skipped":
      if (!run.scheduled) return state;
      return run.state === "skipped"
        ? startFiring(state, `a tick was skipped: ${run.reason}`, run.id)
        : stopFiring(state);
    case "silent":
      return run.state === "completed" ? stopFiring({ ...state, lastSuccess: run.finishedAt }) : state;
    default:
      return state;
  }
}

/**
 * Returns the rule's next state after a periodic check. The check finds what no run reports: a missing success, a planned run that did not
 * start, or a long queue.
 */
export function computeAlertStateAfterCheck(
  rule: AlertRule,
  state: AlertRuleState,
  checkInput: AlertCheckInput,
): AlertRuleState {
  const { now, countedSince, isTickOverdue, oldestQueuedMs } = checkInput;
  const limitMs = rule.minutes * MINUTE_MS;
  switch (rule.condition) {
    case "skipped":
      if (isTickOverdue) return startFiring(state, OVERDUE_REASON, null);
      return state.reason === OVERDUE_REASON ? stopFiring(state) : state;
    case "silent": {
      const silentMs = now.getTime() - Math.max(countedSince.getTime(), (state.lastSuccess ?? countedSince).getTime());
      if (silentMs >= limitMs) return startFiring(state, `it has not succeeded for ${rule.minutes} minutes`, null);
      if (isTickOverdue) return startFiring(state, OVERDUE_REASON, null);
      return state.reason === OVERDUE_REASON ? stopFiring(state) : state;
    }
    case "queued":
      if (oldestQueuedMs >= limitMs) return startFiring(state, `runs have waited for ${rule.minutes} minutes`, null);
      return stopFiring(state);
    default:
      return state;
  }
}
