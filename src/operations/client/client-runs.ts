/**
 * Records runs in browsers. A page reports the start and the end of a run under one idempotency key, so that each run
 * has one row and one log entry. A run whose end is not reported fails at its time limit.
 */
import type { DataSource } from "typeorm";
import type { TriggerType } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BODY_MAX_BYTES, JSON_MAX_DEPTH, RESULT_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { ERROR_CHARACTERS } from "../../rules/client-report.js";
import { isObject, nestsDeeperThan } from "../../rules/described.js";
import { JsonText } from "../../rules/json-text.js";
import { flatShape, refuseUnknownFields, reportUnknownField, type Shape } from "../../rules/unknown-fields.js";
import type { RunOutcome, ScriptError } from "../records/execution-logs.js";
import type { IntakeLimiter } from "../records/intake.js";
import { browserEnding, CLIENT_LATE_MS, timeoutOutcome } from "../runs/outcomes.js";
import { BROWSER_HOLDER, type RunRepository } from "../runs/run-repository.js";
import { type ClientActions, findReported } from "./client-actions.js";

/**
 * Report of a run in a browser. At the start, `body` is `{payload}`; at the end, `{payload, result?, duration}` or
 * `{payload, error, duration}`. `duration` is in milliseconds.
 */
export interface ClientRunReport {
  appId: number;
  actionId: number;
  body: unknown;
  idempotencyKey: string | null;
}

/** Number of rows that one report adds: a run and its log entry. */
const ROWS_OF_A_RUN = 2;

const REPORT_SHAPE: Shape = {
  fields: {
    ...flatShape(["payload", "result", "duration"]).fields,
    error: flatShape(["name", "message", "stack"]),
  },
};

/* Finds the run whose start was reported with the idempotency key $3. */
const SELECT_ANNOUNCED_RUN = `
  SELECT run.id, run.trigger FROM run_key JOIN run ON run.id = run_key.run_id
   WHERE run_key.action_id = $1 AND run_key.credential_id = $2 AND run_key.key = $3 AND run.app_id = $4`;

function limitedText(error: Record<string, unknown>, field: keyof ScriptError): string {
  const text = error[field] ?? "";
  if (typeof text !== "string") throw new ActionError("REQUEST_INVALID", `error.${field} must be a string`);
  return text.slice(0, ERROR_CHARACTERS[field]).toWellFormed();
}

function readError(error: unknown): ScriptError {
  if (!isObject(error)) throw new ActionError("REQUEST_INVALID", "error must be an object {name, message, stack}");
  return {
    name: limitedText(error, "name") || "Error",
    message: limitedText(error, "message"),
    stack: limitedText(error, "stack"),
  };
}

function readOutcome(body: Record<string, unknown>): RunOutcome {
  const { result, error } = body;
  if (error !== undefined) {
    if (result === undefined) return { ok: false, error: readError(error) };
    throw new ActionError("REQUEST_INVALID", "result and error must not both be set");
  }
  const data = result === undefined ? undefined : jsonOf(result);
  if (data === undefined || Buffer.byteLength(data) <= RESULT_MAX_BYTES) return { ok: true, data };
  const message = `the result is larger than ${RESULT_MAX_BYTES / 2 ** 20} MB`;
  return { ok: false, error: { name: "ResultError", message, stack: `ResultError: ${message}` } };
}

/** Returns the JSON text of a value. In a large report, payload and result already are JSON texts. */
const jsonOf = (value: unknown): string => (value instanceof JsonText ? value.text : JSON.stringify(value));

const isTooDeep = (value: unknown): boolean => !(value instanceof JsonText) && nestsDeeperThan(value, JSON_MAX_DEPTH);

/** @throws REQUEST_INVALID, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE */
function readPayload(body: unknown): { fields: Record<string, unknown>; payload: string } {
  if (!isObject(body)) throw new ActionError("REQUEST_INVALID", "the report must be a JSON object");
  const { payload = {} } = body;
  const isText = payload instanceof JsonText;
  if (isText ? !payload.text.startsWith("{") : !isObject(payload)) throw new ActionError("PAYLOAD_INVALID");
  if (isTooDeep(payload) || isTooDeep(body["result"])) {
    throw new ActionError("PAYLOAD_INVALID", `payload and result must not nest deeper than ${JSON_MAX_DEPTH} levels`);
  }
  const text = jsonOf(payload);
  if (Buffer.byteLength(text) > BODY_MAX_BYTES) throw new ActionError("PAYLOAD_TOO_LARGE");
  return { fields: body, payload: text };
}

function readReport(body: unknown): { payload: string; duration: number; outcome: RunOutcome } {
  const { fields, payload } = readPayload(body);
  const { duration } = fields;
  if (
    typeof duration !== "number" ||
    !Number.isFinite(duration) ||
    duration < 0 ||
    duration > Number.MAX_SAFE_INTEGER
  ) {
    throw new ActionError("REQUEST_INVALID", "duration must be a number of milliseconds, 0 or more");
  }
  return { payload, duration, outcome: readOutcome(fields) };
}

const sizeOf = (outcome: RunOutcome): number =>
  Buffer.byteLength(outcome.ok ? (outcome.data ?? "") : JSON.stringify(outcome.error));

export type ClientRuns = ReturnType<typeof createClientRuns>;

export function createClientRuns(options: {
  db: DataSource;
  repository: RunRepository;
  /** Milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
  intake: IntakeLimiter;
  clientActions: Pick<ClientActions, "accessRefusal">;
  /** Counts a request. @throws RATE_LIMIT_EXCEEDED for a caller that sends too many */
  countRequest: (caller: Caller) => void;
}) {
  const { db, repository, timeoutMs, intake, clientActions, countRequest } = options;

  /**
   * Replaces the outcome with a timeout if the run took longer than its limit, because a browser may not stop an action
   * at its limit.
   */
  function limitOutcome(outcome: RunOutcome, duration: number): RunOutcome {
    if (!outcome.ok || duration <= timeoutMs + CLIENT_LATE_MS) return outcome;
    return timeoutOutcome(`the action ran longer than the limit of ${timeoutMs / 1000} seconds`);
  }

  async function findAnnouncedRun(manager: Executor, { credentialId }: Caller, run: ClientRunReport) {
    if (run.idempotencyKey === null) return undefined;
    const key = [run.actionId, credentialId, run.idempotencyKey, run.appId];
    return (await rows<{ id: number; trigger: TriggerType }>(manager, SELECT_ANNOUNCED_RUN, key))[0];
  }

  /** Inserts the run as running in a browser, once for its idempotency key. @throws as `findReported` */
  async function acceptReport(manager: Executor, caller: Caller, report: ClientRunReport, payload: string) {
    const { appId, actionId, idempotencyKey } = report;
    const { triggers } = await findReported(manager, caller, appId, actionId);
    const trigger: TriggerType = triggers.some((trigger) => trigger.trigger === "analytics") ? "analytics" : "manual";
    const { copy, personId, credentialId } = caller;
    const run = { appId, actionId, copy, trigger, payload, personId, credentialId, idempotencyKey };
    return { ...(await repository.insert(run, BROWSER_HOLDER, manager)), trigger };
  }

  return {
    /**
     * Records the start of a run in a browser. If no report of the end with the same key follows, the run fails at its
     * time limit.
     * @throws as `report`
     */
    async start(caller: Caller, run: ClientRunReport): Promise<{ runId: number }> {
      const { payload } = readPayload(run.body);
      if (run.idempotencyKey === null) {
        throw new ActionError(
          "REQUEST_INVALID",
          "the report of a run's start requires an Idempotency-Key header; send the same key with the report of its end",
        );
      }
      countRequest(caller);
      intake.takeRows(caller, run.appId, Buffer.byteLength(payload), ROWS_OF_A_RUN);
      const refusal = await clientActions.accessRefusal(caller, run.appId, run.actionId);
      if (refusal) throw refusal;
      return db.transaction(async (manager) => {
        const { id } = await acceptReport(manager, caller, run, payload);
        reportUnknownField(caller);
        return { runId: id };
      });
    },

    /**
     * Records a run that a browser executed (specification, Execution log entry: `runOn` is `client`).
     * @throws REQUEST_INVALID, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE, ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3,
     *   ACTION_ACCESS_DENIED, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED, RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async report(caller: Caller, report: ClientRunReport): Promise<{ runId: number }> {
      const { payload, duration: durationMs, outcome: reported } = readReport(report.body);
      const outcome = limitOutcome(reported, durationMs);
      countRequest(caller);
      intake.takeRows(caller, report.appId, Buffer.byteLength(payload) + sizeOf(outcome), ROWS_OF_A_RUN);
      const refusal = await clientActions.accessRefusal(caller, report.appId, report.actionId);
      return db.transaction(async (manager) => {
        // The end of a started run is always recorded, even if its action has changed since the start.
        const started = await findAnnouncedRun(manager, caller, report);
        if (!started && refusal) throw refusal;
        const run = started ?? (await acceptReport(manager, caller, report, payload));
        refuseUnknownFields(report.body, REPORT_SHAPE);
        const endedRun = { trigger: run.trigger, actionId: report.actionId };
        await repository.finish(run.id, BROWSER_HOLDER, browserEnding(endedRun, outcome, durationMs), manager);
        return { runId: run.id };
      });
    },
  };
}
