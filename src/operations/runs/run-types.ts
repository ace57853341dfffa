/**
 * TypeScript types that describe a run from the call to the execution, and the PostgreSQL notification channels that
 * name one run.
 */
import type { ActionRow } from "../../data/action.js";
import type { Copy, RunWait, TriggerType } from "../../data/action-types.js";

/** Notification channel: a message cancels a run in the process that executes the run. */
export const CANCEL_CHANNEL = "svc_cancel";

/**
 * Notification channel: `parent:child` means that the run `parent`, in any process, waits for the queued run `child`.
 */
export const AWAITED_CHANNEL = "svc_awaited";

/** Builds the notification that cancels a run: `run`, or `run:other` if the run `other` replaces it. */
export const cancelNotice = (runId: number, displacedBy: number | null): [channel: string, notice: string] => [
  CANCEL_CHANNEL,
  displacedBy === null ? String(runId) : `${runId}:${displacedBy}`,
];

/** Code that a run evaluates, with its environment. */
export type RunCode = Pick<ActionRow, "name" | "code" | "environment" | "dependencies" | "assets"> & {
  /** Source map of code that was built from the author's files. */
  map?: string | null;
  timeoutMs?: number | null;
  /** Origins that the action may contact; absent in snapshots of old releases. */
  integrationOrigins?: string[];
};

/** Fields of a run that are known when its action is called. `payload` is JSON text. */
interface RunBase {
  appId: number;
  actionId: number;
  copy: Copy;
  trigger: TriggerType;
  payload: string;
  personId: number | null;
  credentialId: number | null;
  /** Code of the action; present if the statement that started the run has read it. */
  code?: RunCode;
  /** Version number of the app's secrets, read together with the code. */
  secretsVersion?: number;
}

/** A run before its row is written. */
export interface NewRun extends RunBase {
  idempotencyKey: string | null;
  /** True if a repeated idempotency key may start another run after this run has failed or was cancelled. */
  retryFailed?: boolean;
  /** Condition that a queued run waits for before it can be claimed, by the action's `debounce` or `concurrency`. */
  waitsFor?: RunWait | null;
  /** ID of the run whose task token called this run. */
  causeRunId?: number | null;
  /** ID of the run whose payload is repeated. */
  replayOf?: number | null;
  /** ID of the version whose code runs instead of the draft or live version. */
  versionId?: number | null;
}

/** A run that this process holds. */
export interface RunRecord extends RunBase {
  id: number;
  replayOf: number | null;
  versionId: number | null;
  startedAt: Date | null;
  /** Trace context of the request (W3C Trace Context) for a run that starts at once. */
  traceparent?: string | null;
}
