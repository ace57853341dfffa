/**
 * Records the runs that browsers execute. A page reports the start and the end of a run with the same idempotency key.
 * So the run gets only one row and one log entry. If the page does not report the end, the run fails at its time limit.
 */
import type { TriggerType } from "../../data/action-types.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { BROWSER_HOLDER_ID } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { BODY_MAX_BYTES, JSON_MAX_DEPTH, RESULT_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { CLIENT_RUN_ERROR_MAX_CHARACTERS } from "../../rules/client-run-report.js";
import { isObject, nestsDeeperThan } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import { JsonText } from "../../rules/json-text.js";
import { createFlatShape, refuseUnknownFields, type Shape, throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { RunOutcome, ScriptError } from "../records/execution-logs.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { BROWSER_REPORT_GRACE_MS, createFailedOutcome, createRunEndRecord } from "../runs/outcomes.js";
import { insertRunByActionId } from "../runs/run-inserts.js";
import type { RunRepository } from "../runs/run-repository.js";
import { type ClientActions, requireActionOfReportedRun } from "./client-actions.js";

/**
 * A page's report of a run in the browser. For the start, `body` is `{payload}`; for the end, `{payload, result?,
 * duration}` or `{payload, error, duration}`. `duration` is in milliseconds.
 */
export interface ClientRunReport {
  appId: number;
  actionId: number;
  body: unknown;
  idempotencyKey: string | null;
}

/** Number of rows that one report adds to the database: a run and its log entry. */
const ROWS_PER_REPORT = 2;

const RUN_REPORT_SHAPE: Shape = {
  fields: {
    ...createFlatShape(["payload", "result", "duration"]).fields,
    error: createFlatShape(["name", "message", "stack"]),
  },
};

/* Finds the run whose start was reported with the idempotency key $3. */
const SELECT_ANNOUNCED_RUN = `
  SELECT run.id, run.trigger FROM run_key JOIN run ON run.id = run_key.run_id
   WHERE run_key.action_id = $1 AND run_key.credential_id = $2 AND run_key.key = $3 AND run.app_id = $4`;

function readErrorField(error: Record<string, unknown>, field: keyof ScriptError): string {
  const text = error[field] ?? "";
  if (typeof text !== "string") refuseField(`error.${field}`, "a string", text);
  return text.slice(0, CLIENT_RUN_ERROR_MAX_CHARACTERS[field]).toWellFormed();
}

function readError(error: unknown): ScriptError {
  if (!isObject(error)) refuseField("error", 'an object with the fields "name", "message" and "stack"', error);
  return {
    name: readErrorField(error, "name") || "Error",
    message: readErrorField(error, "message"),
    stack: readErrorField(error, "stack"),
  };
}

function readOutcome(body: Record<string, unknown>): RunOutcome {
  const { result, error } = body;
  if (error !== undefined) {
    if (result === undefined) return { ok: false, error: readError(error) };
    throw new ActionError("REQUEST_INVALID", 'set only one of "result" and "error", not both');
  }
  const data = result === undefined ? undefined : toJsonText(result);
  if (data === undefined || Buffer.byteLength(data) <= RESULT_MAX_BYTES) return { ok: true, data };
  const message = `the result is larger than ${RESULT_MAX_BYTES / 2 ** 20} MB`;
  return { ok: false, error: { name: "ResultError", message, stack: `ResultError: ${message}` } };
}

/** Returns `value` as JSON text. In a large report, the payload and the result are JSON texts already (JsonText). */
const toJsonText = (value: unknown): string => (value instanceof JsonText ? value.text : JSON.stringify(value));

const isTooDeep = (value: unknown): boolean => !(value instanceof JsonText) && nestsDeeperThan(value, JSON_MAX_DEPTH);

/** Returns a report's fields, and its payload as JSON text. @throws REQUEST_INVALID, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE */
function readPayload(body: unknown): { fields: Record<string, unknown>; payload: string } {
  if (!isObject(body)) refuseField("the body of the report", "a JSON object", body);
  const { payload = {} } = body;
  const isJsonText = payload instanceof JsonText;
  if (isJsonText ? !payload.text.startsWith("{") : !isObject(payload)) throw new ActionError("PAYLOAD_INVALID");
  if (isTooDeep(payload) || isTooDeep(body["result"])) {
    throw new ActionError(
      "PAYLOAD_INVALID",
      `"payload" and "result" must not be nested deeper than ${JSON_MAX_DEPTH} levels`,
    );
  }
  const text = toJsonText(payload);
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
    refuseField("duration", "a number of milliseconds, 0 or more", duration);
  }
  return { payload, duration, outcome: readOutcome(fields) };
}

const measureOutcomeBytes = (outcome: RunOutcome): number =>
  Buffer.byteLength(outcome.ok ? (outcome.data ?? "") : JSON.stringify(outcome.error));

interface ClientRunsOptions {
  db: Db;
  repository: RunRepository;
  /** Time limit of a run in a browser, in milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
  receivedDataLimiter: ReceivedDataLimiter;
  clientActions: Pick<ClientActions, "findAccessError">;
  /** Counts one request of the caller. @throws RATE_LIMIT_EXCEEDED if the caller sends too many requests */
  countRequest: (caller: Caller) => void;
}

async function findAnnouncedRun(manager: SqlClient, { credentialId }: Caller, run: ClientRunReport) {
  if (run.idempotencyKey === null) return undefined;
  const key = [run.actionId, credentialId, run.idempotencyKey, run.appId];
  return (await rows<{ id: number; trigger: TriggerType }>(manager, SELECT_ANNOUNCED_RUN, key))[0];
}

export class ClientRuns {
  constructor(private readonly options: ClientRunsOptions) {}

  /** Returns a timeout for a run that succeeded but took too long, because a browser may fail to stop it; otherwise returns `outcome`. */
  private limitOutcome(outcome: RunOutcome, duration: number): RunOutcome {
    const { timeoutMs } = this.options;
    if (!outcome.ok || duration <= timeoutMs + BROWSER_REPORT_GRACE_MS) return outcome;
    return createFailedOutcome("TimeoutError", `the action ran longer than the limit of ${timeoutMs / 1000} seconds`);
  }

  /**
   * Inserts the run, unless a report with the same idempotency key has inserted the run before.
   * @throws the errors of `requireActionOfReportedRun`
   */
  private async acceptReport(manager: SqlClient, caller: Caller, report: ClientRunReport, payload: string) {
    const { appId, actionId, idempotencyKey } = report;
    const { triggers } = await requireActionOfReportedRun(manager, caller, appId, actionId);
    const trigger: TriggerType = triggers.some((trigger) => trigger.trigger === "analytics") ? "analytics" : "manual";
    const { copy, personId, credentialId } = caller;
    const run = { appId, actionId, copy, trigger, payload, personId, credentialId, idempotencyKey };
    return { ...(await insertRunByActionId(manager, run, BROWSER_HOLDER_ID)), trigger };
  }

  /**
   * Records the start of a run in a browser. If the page does not report the end with the same idempotency key, the
   * run fails at its time limit.
   * @throws the errors of `report`
   */
  async start(caller: Caller, run: ClientRunReport): Promise<{ runId: number }> {
    const { db, receivedDataLimiter, clientActions, countRequest } = this.options;
    const { payload } = readPayload(run.body);
    if (run.idempotencyKey === null) {
      throw new ActionError(
        "REQUEST_INVALID",
        "the report of a run's start requires an Idempotency-Key header; send the same key with the report of its end",
      );
    }
    countRequest(caller);
    receivedDataLimiter.countRows(caller, run.appId, Buffer.byteLength(payload), ROWS_PER_REPORT);
    const refusal = await clientActions.findAccessError(caller, run.appId, run.actionId);
    if (refusal) throw refusal;
    return db.transaction(async (manager) => {
      const { id } = await this.acceptReport(manager, caller, run, payload);
      throwIfUnknownField(caller);
      return { runId: id };
    });
  }

  /**
   * Records the end of a run that a browser executed (specification, Execution log entry: `runOn` is `client`). Also
   * inserts the run if its start was not reported.
   * @throws REQUEST_INVALID, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE, ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3,
   *   ACTION_ACCESS_DENIED, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async report(caller: Caller, report: ClientRunReport): Promise<{ runId: number }> {
    const { db, repository, receivedDataLimiter, clientActions, countRequest } = this.options;
    const { payload, duration: durationMs, outcome: reportedOutcome } = readReport(report.body);
    const outcome = this.limitOutcome(reportedOutcome, durationMs);
    countRequest(caller);
    receivedDataLimiter.countRows(
      caller,
      report.appId,
      Buffer.byteLength(payload) + measureOutcomeBytes(outcome),
      ROWS_PER_REPORT,
    );
    const refusal = await clientActions.findAccessError(caller, report.appId, report.actionId);
    return db.transaction(async (manager) => {
      // If the start was recorded, the end is always recorded too, even if the page may no longer run the action.
      const announcedRun = await findAnnouncedRun(manager, caller, report);
      if (!announcedRun && refusal) throw refusal;
      const run = announcedRun ?? (await this.acceptReport(manager, caller, report, payload));
      refuseUnknownFields(report.body, RUN_REPORT_SHAPE);
      const endedRun = { ...run, actionId: report.actionId };
      await repository.finish(createRunEndRecord(endedRun, BROWSER_HOLDER_ID, outcome, durationMs, null), manager);
      return { runId: run.id };
    });
  }
}
