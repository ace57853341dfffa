/** The ends of runs that browsers perform: as they report them, and as the service ends those that no page reports. */
import type { TriggerType } from "../../data/action-types.js";
import { entryData, type RunOutcome } from "../records/execution-logs.js";
import type { Ending } from "./endings.js";
import type { HeldRun } from "./run-facts.js";

/** Timers of a browser are late, and later in a page that is not seen. */
export const CLIENT_LATE_MS = 5_000;

interface EndedInBrowser {
  trigger: TriggerType;
  actionId: number;
  durationMs: number;
}

/** The end of a run in a browser with that outcome. */
export function browserEnding({ trigger, actionId: taskId, durationMs }: EndedInBrowser, outcome: RunOutcome): Ending {
  return {
    state: outcome.ok ? "completed" : "failed",
    type: outcome.ok ? "app.task.completed" : "app.task.failed",
    data: entryData({ trigger, runOn: "client", taskId, payload: null, durationMs, outcome }),
  };
}

/** A failure by the time limit. */
export function timedOut(message: string): RunOutcome {
  return { ok: false, error: { name: "TimeoutError", message, stack: `TimeoutError: ${message}` } };
}

const CANCELLED: RunOutcome = {
  ok: false,
  error: {
    name: "CancelledError",
    message: "the run was cancelled",
    stack: "CancelledError: the run was cancelled",
  },
};

/** The end of a run in a browser that was cancelled. The page is not stopped, and its report changes nothing any more. */
export function cancelledInBrowser(run: HeldRun): Ending {
  const durationMs = run.startedAt ? Date.now() - run.startedAt.getTime() : 0;
  return { ...browserEnding({ ...run, durationMs }, CANCELLED), state: "cancelled" };
}

/** The end of a run whose page has not reported one in time: it was closed, or its code runs on. */
export function overdueEnding(run: HeldRun, timeoutMs: number): Ending {
  const message = `the page reported no end within the limit of ${timeoutMs / 1000} seconds; it was closed, or the code still runs`;
  const durationMs = run.startedAt ? Date.now() - run.startedAt.getTime() : 0;
  return browserEnding({ ...run, durationMs }, timedOut(message));
}
