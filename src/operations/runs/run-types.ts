/** Types of a run, and the PostgreSQL channels for messages about one run. */
import type { ActionRow } from "../../data/action.js";
import type { DraftOrLive, RunWaitReason, TriggerType } from "../../data/action-types.js";

/** PostgreSQL channel. A message asks the process that executes a run to cancel it. */
export const CANCEL_RUN_CHANNEL = "svc_cancel";

/** PostgreSQL channel. Message `parent:child`: the run `parent`, in any process, started the queued run `child`, and may wait for it. */
export const AWAITED_RUN_CHANNEL = "svc_awaited";

/** The message is the run's ID, or `run:other` if the run `other` replaces the run. */
export const createCancelRunNotice = (runId: number, displacedBy: number | null): [channel: string, notice: string] => [
  CANCEL_RUN_CHANNEL,
  displacedBy === null ? String(runId) : `${runId}:${displacedBy}`,
];

export type RunCode = Pick<ActionRow, "name" | "code" | "environment" | "dependencies" | "assets"> & {
  /** JSON text of the code's source map; null if the code was not compiled from source files. Stored versions have `source` instead. */
  map?: string | null;
  source?: Pick<NonNullable<ActionRow["source"]>, "map"> | null;
  timeoutMs?: number | null;
  /** Origins to which the action may send requests; absent in versions that old releases stored. */
  integrationOrigins?: string[];
};

/** `payload` is JSON text. */
interface RunBase {
  appId: number;
  actionId: number;
  copy: DraftOrLive;
  trigger: TriggerType;
  payload: string;
  personId: number | null;
  credentialId: number | null;
  /** ID of the earlier run whose payload this run uses again. */
  replayOf?: number | null;
  /** ID of the older version whose code runs instead of the draft or live version. */
  versionId?: number | null;
  /** Code of the action or version, which the statement that starts the run reads. Null if the action or version was deleted. */
  code?: RunCode | null;
  /** Version of the app's secrets when the code was read; null if the app was deleted. */
  secretsVersion?: number | null;
  /** W3C trace context of the request that called the action; null without tracing, and for runs that no request started. */
  traceparent?: string | null;
}

export interface NewRun extends RunBase {
  idempotencyKey: string | null;
  /** True if a request with the same idempotency key starts another run after the first run failed, was cancelled or was skipped. */
  retryFailed?: boolean;
  /** Setting of the action (`debounce` or `concurrency`) that delays a queued run; null if none does. */
  waitsFor?: RunWaitReason | null;
  causeRunId?: number | null;
}

export interface RunRecord extends RunBase {
  id: number;
  startedAt: Date | null;
}
