/** Types of a run from its acceptance to its execution, and the channels of notifications about single runs. */
import type { ActionRow } from "../../data/action.js";
import type { Copy, RunWait, TriggerType } from "../../data/action-types.js";

/** Channel of the notification that a run is to be cancelled, for the process that executes it. */
export const CANCEL_CHANNEL = "svc_cancel";

/** Channel of the notification `parent:child`: the run `parent`, in any process, waits for the queued run `child`. */
export const AWAITED_CHANNEL = "svc_awaited";

/** Notification `run`, or `run:other` if the run is replaced by another one. */
export const cancelNotice = (runId: number, displacedBy: number | null): [channel: string, notice: string] => [
  CANCEL_CHANNEL,
  displacedBy === null ? String(runId) : `${runId}:${displacedBy}`,
];

/** Code that a run evaluates, with its environment. */
export type RunCode = Pick<ActionRow, "name" | "code" | "environment" | "dependencies" | "assets"> & {
  /** Source map of code that was built from the author's files. */
  map?: string | null;
  timeoutMs?: number | null;
  /** Absent in snapshots of releases without origins. */
  integrationOrigins?: string[];
};

/** Facts of a run that are known from its acceptance on. `payload` is JSON text. */
interface RunBase {
  appId: number;
  actionId: number;
  copy: Copy;
  trigger: TriggerType;
  payload: string;
  personId: number | null;
  credentialId: number | null;
  /** Present if the statement that started the run has read it. */
  code?: RunCode;
  /** Number of the last change of the app's secrets, read with the code. */
  secretsVersion?: number;
}

/** A run before its row is written. */
export interface NewRun extends RunBase {
  idempotencyKey: string | null;
  /** True if the key of a failed or cancelled run can start another run. */
  retryFailed?: boolean;
  /** Condition of the action's settings for which the run waits. */
  waitsFor?: RunWait | null;
  /** The run whose task token asked for this one. */
  causeRunId?: number | null;
  /** The run whose payload is repeated. */
  replayOf?: number | null;
  /** The version whose code runs instead of the draft or live version. */
  versionId?: number | null;
}

/** A run that this process holds. */
export interface RunRecord extends RunBase {
  id: number;
  replayOf: number | null;
  versionId: number | null;
  startedAt: Date | null;
  /** Trace context of a run that starts at once (W3C Trace Context). */
  traceparent?: string | null;
}
