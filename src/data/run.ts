/** States of a run, and all transitions between them. Read this file before you write SQL that changes `run.state`. */

export const RUN_STATES = ["queued", "running", "completed", "failed", "skipped", "cancelled"] as const;
export type RunState = (typeof RUN_STATES)[number];

interface RunTransition {
  /** State before the transition; null if the transition creates the run. */
  from: RunState | null;
  to: RunState;
  /** Causes of the transition, by the name of the run's error: "" for no error, "the error of the code" for each error that code throws. */
  when: Readonly<Record<string, string>>;
}

/**
 * All transitions between the states of a run. SQL statements take their states from this table, and docs/internals/run-lifecycle.md is
 * generated from it.
 */
export const RUN_TRANSITIONS = {
  queue: {
    from: null,
    to: "queued",
    when: { "": "no slot is free, or the run waits for its `concurrency` or `debounce`" },
  },
  start: { from: null, to: "running", when: { "": "a slot is free, or a page starts the run of a client action" } },
  reject: {
    from: null,
    to: "skipped",
    when: {
      "": "the app is unpublished or its schedules are paused, the previous scheduled run has not ended, the scheduled time was missed, the queue is full, or the chain of runs is too long",
    },
  },
  claim: { from: "queued", to: "running", when: { "": "a runner has a free slot" } },
  returnClaim: {
    from: "running",
    to: "queued",
    when: { "": "the runner claimed the run, but the database's response did not reach it" },
  },
  skip: {
    from: "queued",
    to: "skipped",
    when: { "": "the scheduled run is late by more than 60 s, or its `concurrency` has the policy `skip`" },
  },
  cancelQueued: {
    from: "queued",
    to: "cancelled",
    when: {
      CancelledError:
        "a person cancels the run, its caller disconnects, a newer run replaces it, or its app is a preview that is deleted",
    },
  },
  failQueued: {
    from: "queued",
    to: "failed",
    when: { ConcurrencyError: "because of `concurrency`, the run would wait for a run that waits for it" },
  },
  complete: { from: "running", to: "completed", when: { "": "the function `execute` returned" } },
  cancel: {
    from: "running",
    to: "cancelled",
    when: {
      CancelledError: "a person cancels the run, a newer run replaces it, or its app is a preview that is deleted",
    },
  },
  fail: {
    from: "running",
    to: "failed",
    when: {
      "the error of the code": "the code of the action throws an error",
      TimeoutError: "the run exceeds its time limit, or its page does not report its end in time",
      RangeError: "the run uses too much memory, or its result is too large or has too many levels",
      ResultError: "the result of the run is not JSON, or PostgreSQL cannot store it",
      SecretLeakError: "the result or the error of the run contains a secret",
      Error: "the page or the browser crashes, or the page cannot be prepared",
      ActionNotFoundError: "the action was deleted before the run started",
      InternalError: "the service has an internal error",
      RunLostError: "the process that executed the run died, or did not reach the database in time",
      ShutdownError: "the process stops and its grace period (`SHUTDOWN_GRACE_MS`) is over",
    },
  },
} as const satisfies Readonly<Record<string, RunTransition>>;

export type RunTransitionName = keyof typeof RUN_TRANSITIONS;

/** State in which a run ends, without `skipped`: only runs that never started end as `skipped`. */
export type RunEndState = "completed" | "failed" | "cancelled";

export type RunErrorName =
  | keyof (typeof RUN_TRANSITIONS)["fail"]["when"]
  | keyof (typeof RUN_TRANSITIONS)["cancel"]["when"]
  | keyof (typeof RUN_TRANSITIONS)["failQueued"]["when"];

/** Returns an SQL condition: the run is in the state from which the transition `name` starts. */
export const isInSourceStateSql = (name: RunTransitionName): string => `state = '${RUN_TRANSITIONS[name].from}'`;

/** Returns an SQL assignment (for SET) of the state after the transition `name`. */
export const setTargetStateSql = (name: RunTransitionName): string => `state = '${RUN_TRANSITIONS[name].to}'`;

/** SQL expression for the state of a new run: `skipped` if the column `reason` has a value, otherwise `queued`. */
export const NEW_RUN_STATE_SQL = `CASE WHEN reason IS NULL THEN '${RUN_TRANSITIONS.queue.to}' ELSE '${RUN_TRANSITIONS.reject.to}' END`;

/** @throws Error if RUN_TRANSITIONS has no transition between these two states */
export function checkRunTransition(from: RunState, to: RunEndState): void {
  const isKnown = Object.values<RunTransition>(RUN_TRANSITIONS).some(
    (transition) => transition.from === from && transition.to === to,
  );
  if (!isKnown) throw new Error(`a run in the state ${from} cannot change to the state ${to}`);
}

/** SQL condition for a running run. `finished_at IS NULL` lets PostgreSQL use the index of unfinished runs. */
export const IS_RUNNING_SQL = "state = 'running' AND finished_at IS NULL";

/**
 * ID of the holder (usually a process) of all runs that browsers execute. Its row in the table `instance` has a lease without end, so that
 * no process ends these runs as lost.
 */
export const BROWSER_HOLDER_ID = "00000000-0000-4000-8000-0000000c11e7";
export type ExecutionLogType = "app.task.completed" | "app.task.failed";
