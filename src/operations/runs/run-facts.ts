/** What is known of a run at each stage of its life, and how one is asked to end. Data alone. */
import type { ActionRow } from "../../data/action.js";
import type { Copy, RunWait, TriggerType } from "../../data/action-types.js";

/** Channel of the notice that a run is to be cancelled, whoever holds it. */
export const CANCEL_CHANNEL = "svc_cancel";

/** Channel of the notice `parent:child` that the run `parent`, wherever it is performed, waits for the queued run `child`. */
export const AWAITED_CHANNEL = "svc_awaited";

/** The notice `run`, or `run:other` where the run makes way for another. */
export const cancelNotice = (runId: number, displacedBy: number | null): [channel: string, notice: string] => [
  CANCEL_CHANNEL,
  displacedBy === null ? String(runId) : `${runId}:${displacedBy}`,
];

/** What a run evaluates. */
export type RunCode = Pick<ActionRow, "name" | "code" | "environment" | "dependencies" | "assets"> & {
  /** Source map of code that was built from the author's files. */
  map?: string | null;
  timeoutMs?: number | null;
  /** Absent in snapshots of releases without origins. */
  integrationOrigins?: string[];
};

/** What a run is, from its acceptance on. `payload` is JSON text. */
interface RunFacts {
  appId: number;
  actionId: number;
  copy: Copy;
  trigger: TriggerType;
  payload: string;
  personId: number | null;
  credentialId: number | null;
  /** As they were found for a run that starts at once; read at the start otherwise. */
  code?: RunCode;
  /** The number of the last change of the app's secrets. */
  secretsVersion?: number;
}

/** A run as it is accepted. */
export interface NewRun extends RunFacts {
  idempotencyKey: string | null;
  /** A key whose run failed or was cancelled is free again. */
  retryFailed?: boolean;
  /** What its action's settings have it wait for. */
  waitsFor?: RunWait | null;
  /** The run whose task token asked for this one: the chain of causes goes on. */
  causeRunId?: number | null;
  /** The run whose payload this one repeats. */
  replayOf?: number | null;
  /** The snapshot whose code runs instead of the copy's. */
  versionId?: number | null;
}

/** A run that this process holds. */
export interface HeldRun extends RunFacts {
  id: number;
  replayOf: number | null;
  versionId: number | null;
  startedAt: Date | null;
  /** The trace that it belongs to, as it is known of a run that starts at once (W3C Trace Context). */
  traceparent?: string | null;
}
