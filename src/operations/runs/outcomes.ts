/**
 * Converts outcomes of runs to the endings that are stored: for code on the server, for browsers, and for runs that
 * never started.
 */
import type { TriggerType } from "../../data/action-types.js";
import type { EndState, RunErrorName } from "../../data/run.js";
import { createThreads } from "../../engine/threads.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import { runResultFault } from "../../rules/json-scan.js";
import { entryData, type RunOutcome } from "../records/execution-logs.js";
import type { RunOutcomeLabel } from "../watch/measures.js";
import type { RunEnd } from "./finish.js";
import type { RunRecord } from "./run-types.js";

export const EMPTY_PAYLOAD = "{}";

export function failedOutcome(name: RunErrorName, message: string): RunOutcome {
  return { ok: false, error: { name, message, stack: `${name}: ${message}` } };
}

/**
 * Maximum length of a result that is checked on the main thread. A longer result is checked in a worker thread, because
 * a text of two million `{}` takes a tenth of a second.
 */
const READ_HERE_MAX_CHARACTERS = 256 * 1024;
const resultFaults = createThreads<string | Buffer, ReturnType<typeof runResultFault>>({
  module: new URL("../../rules/json-scan.js", import.meta.url),
  name: "runResultFault",
  memoryMb: 64,
  timeoutMs: 10_000,
});

async function faultOf(data: string | Buffer): Promise<ReturnType<typeof runResultFault>> {
  if (typeof data === "string" && data.length <= READ_HERE_MAX_CHARACTERS) return runResultFault(data);
  const called = await resultFaults.call(data);
  if (called.ok) return called.value;
  throw new Error(`the check of a run's result exceeded its limit of ${called.limit}`);
}

/**
 * Returns the outcome of code that returned `data`: a failure if PostgreSQL could not store the text. The service
 * checks the text itself, because it does not trust the page.
 */
export async function completedOutcome(data: string | Buffer | undefined): Promise<RunOutcome> {
  const fault = data === undefined ? null : await faultOf(data);
  if (fault === null) return { ok: true, data };
  if (fault === "invalid") return failedOutcome("ResultError", "the result of execute is not JSON");
  return failedOutcome("RangeError", `the result of execute nests deeper than ${JSON_MAX_DEPTH} levels`);
}

export const UNSTORABLE_OUTCOME = failedOutcome("ResultError", "the result or error of the action cannot be stored");
export const STOPPED_OUTCOME = failedOutcome("ShutdownError", "the service was stopped before the action ended");
const LOST_OUTCOME = failedOutcome("RunLostError", "the process that ran this action died before the action ended");
const DEADLOCK_OUTCOME = failedOutcome(
  "ConcurrencyError",
  'deadlock: the action\'s "concurrency" setting made this run wait for the run that waits for its result',
);

/** Outcomes of cancelled runs. They are marked by identity, because code can throw an error with the same name. */
const cancelledOutcomes = new WeakSet<RunOutcome>();

/**
 * @param displacedBy ID of the run that replaces the cancelled run, by the action's `concurrency`; null if a person
 *   cancelled it
 */
export function cancelledOutcome(displacedBy: number | null): RunOutcome {
  const reason = displacedBy === null ? "" : `: the action's "concurrency" setting replaced it by run ${displacedBy}`;
  const outcome = failedOutcome("CancelledError", `the run was cancelled${reason}`);
  cancelledOutcomes.add(outcome);
  return outcome;
}

/**
 * True if a person, another run or a stop of the service has ended the run, so that the outcome contains no text of the
 * author's code.
 */
export const isCancelled = (outcome: RunOutcome): boolean =>
  outcome === STOPPED_OUTCOME || cancelledOutcomes.has(outcome);

/** Returns the label of the outcome in metrics. */
export function labelOf(outcome: RunOutcome): RunOutcomeLabel {
  if (outcome.ok) return "completed";
  if (isCancelled(outcome)) return "cancelled";
  return outcome.timedOut ? "timeout" : "failed";
}

function stateOf(outcome: RunOutcome): EndState {
  if (outcome.ok) return "completed";
  return cancelledOutcomes.has(outcome) ? "cancelled" : "failed";
}

type EndedFacts = Pick<RunRecord, "trigger" | "actionId"> & { replayOf?: number | null };

function endingOf(
  run: EndedFacts,
  outcome: RunOutcome,
  runOn: "server" | "client",
  durationMs: number,
  payload: string | null,
): RunEnd {
  const { trigger, actionId: taskId, replayOf } = run;
  return {
    state: stateOf(outcome),
    type: outcome.ok ? "app.task.completed" : "app.task.failed",
    data: entryData({ trigger, runOn, taskId, payload, durationMs, replayOf: replayOf ?? null, outcome }),
  };
}

/**
 * Ending of a run on the server. `payload` is the payload text of the log entry; if it is null, the entry refers to the
 * run's payload. By default only an empty payload is copied, because it is shorter than the reference.
 */
export const serverEnding = (
  run: RunRecord,
  outcome: RunOutcome,
  durationMs = 0,
  payload: string | null = run.payload === EMPTY_PAYLOAD ? EMPTY_PAYLOAD : null,
): RunEnd => endingOf(run, outcome, "server", durationMs, payload);

const msSinceStart = ({ startedAt }: RunRecord): number => (startedAt ? Date.now() - startedAt.getTime() : 0);

/** Ending of a run whose process has died. `payload` as in `serverEnding`. */
export const lostEnding = (run: RunRecord, payload: string | null): RunEnd =>
  serverEnding(run, LOST_OUTCOME, msSinceStart(run), payload);

/**
 * Ending of a run that was cancelled while it was queued, by a person or for the run `displacedBy`. `payload` as in
 * `serverEnding`.
 */
export const cancelledEnding = (run: RunRecord, payload: string | null, displacedBy: number | null = null): RunEnd =>
  serverEnding(run, cancelledOutcome(displacedBy), 0, payload);

/**
 * Ending of a queued run that can never start, because it waits for a run that waits for it. `payload` as in
 * `serverEnding`.
 */
export const deadlockEnding = (run: RunRecord, payload: string | null): RunEnd =>
  serverEnding(run, DEADLOCK_OUTCOME, 0, payload);

/**
 * Milliseconds after the time limit in which a browser's report still counts, because timers of hidden pages are late.
 */
export const CLIENT_LATE_MS = 5_000;

/** Ending of a run that a browser executed. */
export const browserEnding = (
  run: { trigger: TriggerType; actionId: number },
  outcome: RunOutcome,
  durationMs: number,
): RunEnd => endingOf(run, outcome, "client", durationMs, null);

export const timeoutOutcome = (message: string): RunOutcome => failedOutcome("TimeoutError", message);

/**
 * Ending of a cancelled run in a browser. The page continues to run the code, but the page's later report has no
 * effect.
 */
export const cancelledBrowserEnding = (run: RunRecord): RunEnd =>
  browserEnding(run, cancelledOutcome(null), msSinceStart(run));

/** Ending of a run in a browser that has not reported its end in time. */
export function overdueEnding(run: RunRecord, timeoutMs: number): RunEnd {
  const message = `the page did not report the end of the run within ${timeoutMs / 1000} seconds; the page was closed, or the code still runs`;
  return browserEnding(run, timeoutOutcome(message), msSinceStart(run));
}
