/** Builds the final state and the log entry of a run that ended on the server or in a browser, or that never started. */
import { BROWSER_HOLDER_ID, type RunEndState, type RunErrorName } from "../../data/run.js";
import { createThreadPool } from "../../engine/threads.js";
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type * as jsonScan from "../../rules/json-scan.js";
import { findRunResultFault } from "../../rules/json-scan.js";
import { buildLogEntryData, type RunOutcome } from "../records/execution-logs.js";
import type { RunOutcomeLabel } from "../watch/measures.js";
import type { RunEndRecord } from "./finish.js";
import type { RunRecord } from "./run-types.js";

export const EMPTY_PAYLOAD = "{}";

type FailedOutcome = Extract<RunOutcome, { ok: false }>;

export const createFailedOutcome = (
  name: RunErrorName,
  message: string,
  cause?: FailedOutcome["cause"],
): FailedOutcome => ({ ok: false, error: { name, message, stack: `${name}: ${message}` }, cause });

/** Longer results are checked in a worker thread, so that the check does not block the main thread. */
const MAIN_THREAD_MAX_CHARACTERS = 256 * 1024;
const RESULT_CHECK_TIMEOUT_MS = 60_000;

const resultCheckThreadPool = createThreadPool<string | Buffer, ReturnType<typeof findRunResultFault>>({
  module: new URL("../../rules/json-scan.js", import.meta.url),
  name: "findRunResultFault" satisfies keyof typeof jsonScan,
  memoryMb: 64,
  timeoutMs: RESULT_CHECK_TIMEOUT_MS,
});

/** Returns the outcome, or a failure if its result is invalid: pages can send any text. @throws ActionError if the check exceeds a limit */
export async function checkResult(outcome: RunOutcome): Promise<RunOutcome> {
  const data = outcome.ok ? outcome.data : undefined;
  if (data === undefined) return outcome;
  const isShort = typeof data === "string" && data.length <= MAIN_THREAD_MAX_CHARACTERS;
  const checked = isShort
    ? { ok: true as const, value: findRunResultFault(data) }
    : await resultCheckThreadPool.call(data);
  if (!checked.ok)
    throw new ActionError("EXECUTION_FAILED", `the check of the run's result exceeded its limit of ${checked.limit}`);
  if (checked.value === null) return outcome;
  if (checked.value === "invalid") return createFailedOutcome("ResultError", "the result of execute is not JSON");
  return createFailedOutcome("RangeError", `the result of execute nests deeper than ${JSON_MAX_DEPTH} levels`);
}

export const INTERNAL_FAILURE = createFailedOutcome(
  "InternalError",
  "the service could not run this action; an operator finds the cause in the service's log",
);
export const UNSTORABLE_OUTCOME = createFailedOutcome(
  "ResultError",
  "PostgreSQL cannot store the result, the error or a request of the run",
);
export const SERVICE_STOPPED_OUTCOME = createFailedOutcome(
  "ShutdownError",
  "the service was stopped before the action ended",
  "aborted",
);
export const LOST_OUTCOME = createFailedOutcome(
  "RunLostError",
  "the process that executed the run died, or did not reach the database in time",
  "aborted",
);
export const ACTION_DELETED_OUTCOME = createFailedOutcome(
  "ActionNotFoundError",
  "the action or its version was deleted before the run started",
);
export const DEADLOCK_OUTCOME = createFailedOutcome(
  "ConcurrencyError",
  'deadlock: the action\'s "concurrency" setting made this run wait for the run that waits for its result',
);

/** @param displacedBy ID of the run that replaces this run because of `concurrency`; null if no run replaces it */
export function createCancelledRunOutcome(displacedBy: number | null): FailedOutcome {
  const reason = displacedBy === null ? "" : `: the action's "concurrency" setting replaced it by run ${displacedBy}`;
  return createFailedOutcome("CancelledError", `the run was cancelled${reason}`, "cancelled");
}

/** True if this process stops or has lost the run. @param reason abort reason of the run's signal */
export const isAbortedOutcome = (reason: unknown): boolean =>
  reason === SERVICE_STOPPED_OUTCOME || reason === LOST_OUTCOME;

export function toOutcomeMetricLabel(outcome: RunOutcome): RunOutcomeLabel {
  if (outcome.ok) return "completed";
  return outcome.cause === "aborted" ? "cancelled" : (outcome.cause ?? "failed");
}

function getEndState(outcome: RunOutcome): RunEndState {
  if (outcome.ok) return "completed";
  return outcome.cause === "cancelled" ? "cancelled" : "failed";
}

type EndedRun = Pick<RunRecord, "id" | "trigger" | "actionId" | "replayOf">;

/** @param payload payload for the log entry, as JSON text; null if the entry refers to the payload of the run's row */
export function createRunEndRecord(
  { id, trigger, actionId: taskId, replayOf }: EndedRun,
  holder: string | null,
  outcome: RunOutcome,
  durationMs: number,
  payload: string | null,
): RunEndRecord {
  const runOn = holder === BROWSER_HOLDER_ID ? "client" : "server";
  return {
    id,
    holder,
    state: getEndState(outcome),
    data: buildLogEntryData({ trigger, runOn, taskId, payload, durationMs, replayOf, outcome }),
  };
}

/** Milliseconds after the time limit in which a page may report the end of a run. Timers of hidden pages are late. */
export const BROWSER_REPORT_GRACE_MS = 5_000;
