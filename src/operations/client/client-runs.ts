/** Runs that happened in a browser: checks that the reporter may, and gives each its run and its one log entry. Runs nothing. */
import type { DataSource } from "typeorm";
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { isObject, nestsDeeperThan } from "../../rules/described.js";
import { entryData, type RunOutcome, type ScriptError } from "../records/execution-logs.js";
import type { Intake } from "../records/intake.js";
import type { Ending } from "../runs/endings.js";
import type { Ledger } from "../runs/ledger.js";
import { findReported } from "./client-actions.js";

/** What a browser says of a run: `{payload, result?, duration}` or `{payload, error, duration}`; `duration` in milliseconds. */
export interface ClientRunReport {
  appId: number;
  actionId: number;
  body: unknown;
  idempotencyKey: string | null;
}

/** Timers of a browser are late, and later in a page that is not seen. */
const LATE_MS = 5_000;
/** A run and its log entry. */
const ROWS_OF_A_RUN = 2;
const NAME_CHARACTERS = 255;
const MESSAGE_CHARACTERS = 10_000;
const STACK_CHARACTERS = 50_000;

function bounded(error: Record<string, unknown>, field: keyof ScriptError, longest: number): string {
  const text = error[field] ?? "";
  if (typeof text !== "string") throw new ActionError("REQUEST_INVALID", `error.${field} must be a string`);
  return text.slice(0, longest).toWellFormed();
}

function readError(error: unknown): ScriptError {
  if (!isObject(error)) throw new ActionError("REQUEST_INVALID", "error must be an object {name, message, stack}");
  return {
    name: bounded(error, "name", NAME_CHARACTERS) || "Error",
    message: bounded(error, "message", MESSAGE_CHARACTERS),
    stack: bounded(error, "stack", STACK_CHARACTERS),
  };
}

function readOutcome(body: Record<string, unknown>): RunOutcome {
  const { result, error } = body;
  if (error === undefined) return { ok: true, data: result === undefined ? undefined : JSON.stringify(result) };
  if (result !== undefined) throw new ActionError("REQUEST_INVALID", "a run has a result or an error, not both");
  return { ok: false, error: readError(error) };
}

function readReport(body: unknown): { payload: string; duration: number; outcome: RunOutcome } {
  if (!isObject(body)) throw new ActionError("REQUEST_INVALID", "the report must be an object");
  const { payload = {}, duration } = body;
  if (!isObject(payload)) throw new ActionError("PAYLOAD_INVALID");
  if (nestsDeeperThan(payload, JSON_MAX_DEPTH) || nestsDeeperThan(body["result"], JSON_MAX_DEPTH)) {
    throw new ActionError("PAYLOAD_INVALID", `payload and result must not nest deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (
    typeof duration !== "number" ||
    !Number.isFinite(duration) ||
    duration < 0 ||
    duration > Number.MAX_SAFE_INTEGER
  ) {
    throw new ActionError("REQUEST_INVALID", "duration must be a number of milliseconds from 0");
  }
  return { payload: JSON.stringify(payload), duration, outcome: readOutcome(body) };
}

export type ClientRuns = ReturnType<typeof createClientRuns>;

export function createClientRuns(options: {
  db: DataSource;
  ledger: Ledger;
  /** The fence of this process. */
  holder: string;
  /** Milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
  intake: Intake;
  /** Refuses a caller that sends too often. */
  bound: (caller: Caller) => void;
}) {
  const { db, ledger, holder, timeoutMs, intake, bound } = options;

  /** A browser that lets an action run on does not make the limit longer. */
  function judged(outcome: RunOutcome, duration: number): RunOutcome {
    if (!outcome.ok || duration <= timeoutMs + LATE_MS) return outcome;
    const message = `the action ran longer than the limit of ${timeoutMs / 1000} seconds`;
    return { ok: false, error: { name: "TimeoutError", message, stack: `TimeoutError: ${message}` } };
  }

  return {
    /**
     * Records a run that a browser performed (specification, Execution log entry: `runOn` is `client`).
     * @throws REQUEST_INVALID, PAYLOAD_INVALID, ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED,
     *   RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async report(
      caller: Caller,
      { appId, actionId, body, idempotencyKey }: ClientRunReport,
    ): Promise<{ runId: number }> {
      const { payload, duration: durationMs, outcome: reported } = readReport(body);
      const outcome = judged(reported, durationMs);
      bound(caller);
      const answered = outcome.ok ? (outcome.data ?? "") : JSON.stringify(outcome.error);
      intake.take(caller, appId, Buffer.byteLength(payload) + Buffer.byteLength(answered), ROWS_OF_A_RUN);
      const { copy, personId, credentialId } = caller;
      return db.transaction(async (manager) => {
        const { triggers } = await findReported(manager, caller, appId, actionId);
        const trigger = triggers.some((one) => one.trigger === "analytics") ? "analytics" : "manual";
        const run = { appId, actionId, copy, trigger, payload, personId, credentialId, idempotencyKey } as const;
        const { id, repeated } = await ledger.accept(run, holder, manager);
        if (repeated) return { runId: id };
        const ending: Ending = {
          state: outcome.ok ? "completed" : "failed",
          type: outcome.ok ? "app.task.completed" : "app.task.failed",
          data: entryData({ trigger, runOn: "client", taskId: actionId, payload: null, durationMs, outcome }),
        };
        await ledger.end(id, holder, ending, manager);
        return { runId: id };
      });
    },
  };
}
