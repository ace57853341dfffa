/** What is known of a run at each stage of its life. Data alone. */
import type { ActionRow } from "../../data/action.js";
import type { Copy, TriggerType } from "../../data/action-types.js";

/** What a run evaluates. */
export type RunCode = Pick<ActionRow, "name" | "code" | "environment" | "dependencies" | "assets">;

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
  /** false: nobody is woken for it once it is queued. */
  wakes?: boolean;
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
