/** Builds the final state and the log entry of a run that ended on the server or in a browser, or that never started. */
import { setTimeout as delay } from "node:timers/promises";
import type { RunEndState, RunErrorName } from "../../data/run.js";
import { createThreadPool } from "../../engine/threads.js";
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
const RESULT_CHECK_TIMEOUT_MS = 10_000;
const RESULT_CHECK_RETRY_MAX_MS = 60_000;
const RETRY_DELAY_MS = 500;

type ResultFault = ReturnType<typeof findRunResultFault>;

const resultCheckThreadPool = createThreadPool<string | Buffer, ResultFault>({
  module: new URL("../../rules/json-scan.js", import.meta.url),
  name: "findRunResultFault" satisfies keyof typeof jsonScan,
  memoryMb: 64,
  timeoutMs: RESULT_CHECK_TIMEOUT_MS,
});

class ResultCheckError extends Error {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`the code of the action ended, but the service could not check its result: ${reason}`, { cause });
  }
}

export function createInternalFailure(error: unknown): RunOutcome {
  const message =
    error instanceof ResultCheckError
      ? error.message
      : "the service could not run this action; an operator finds the cause in the service's log";
  return createFailedOutcome("InternalError", message);
}

async function checkInThread(data: string | Buffer): Promise<ResultFault> {
  const checkResult = await resultCheckThreadPool.call(data);
  if (checkResult.ok) return checkResult.value;
  if (checkResult.limit === "memory") throw new Error("the check of the run's result exceeded its memory limit");
  throw new Error(
    `the check of the run's result exceeded its time limit of ${RESULT_CHECK_TIMEOUT_MS / 1_000} seconds`,
  );
}

/** Checks the result. Repeats a failed check (for example, on a busy machine), because the action's code must not run again. */
async function findResultFault(data: string | Buffer, signal: AbortSignal): Promise<ResultFault> {
  if (typeof data === "string" && data.length <= MAIN_THREAD_MAX_CHARACTERS) return findRunResultFault(data);
  const startedAt = performance.now();
  for (;;) {
    try {
      return await checkInThread(data);
    } catch (error) {
      if (isAbortedOutcome(signal.reason) || performance.now() - startedAt >= RESULT_CHECK_RETRY_MAX_MS)
        throw new ResultCheckError(error);
      await delay(RETRY_DELAY_MS);
    }
  }
}

/** Checks the result first, because the page may return invalid JSON. @throws ResultCheckError if the result cannot be checked */
export async function toCompletedOutcome(data: string | Buffer | undefined, signal: AbortSignal): Promise<RunOutcome> {
  const fault = data === undefined ? null : await findResultFault(data, signal);
  if (fault === null) return { ok: true, data };
  if (fault === "invalid") return createFailedOutcome("ResultError", "the result of execute is not JSON");
  return createFailedOutcome("RangeError", `the result of execute nests deeper than ${JSON_MAX_DEPTH} levels`);
}

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

type EndedRun = Pick<RunRecord, "trigger" | "actionId" | "replayOf">;

/** @param payload payload for the log entry, as JSON text; null if the entry refers to the payload of the run's row */
export function createRunEndRecord(
  run: EndedRun,
  outcome: RunOutcome,
  durationMs: number,
  payload: string | null,
  isInBrowser = false,
): RunEndRecord {
  const { trigger, actionId: taskId, replayOf } = run;
  const runOn = isInBrowser ? "client" : "server";
  return {
    state: getEndState(outcome),
    type: outcome.ok ? "app.task.completed" : "app.task.failed",
    data: buildLogEntryData({ trigger, runOn, taskId, payload, durationMs, replayOf, outcome }),
  };
}

/** Milliseconds after the time limit in which a page may report the end of a run. Timers of hidden pages are late. */
export const BROWSER_REPORT_GRACE_MS = 5_000;
