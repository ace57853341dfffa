/** A past run's payload run again, changed or not, by whichever copy or version is asked for. Knows which, not how it runs. */
import type { DataSource } from "typeorm";
import type { Copy, Environment } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { isObject } from "../../rules/described.js";
import { optionalId, refuse } from "../../rules/fields.js";
import { flat, refuseUnknownFields } from "../../rules/unknown-fields.js";
import { oneOf } from "./run-filter.js";
import { payloadText } from "./run-texts.js";
import type { Runs } from "./runs.js";

/* The copy of a run's family that the replay runs; a version belongs to the master. */
const REPLAYED = `
  SELECT svc_run_payload(run.payload, run.event_id) AS payload, run.copy, target.id AS "actionId", target.active, target.environment,
         CASE WHEN target.concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor", version.id AS "versionId", version.data AS version
    FROM run
    LEFT JOIN action self ON self.id = run.action_id
    LEFT JOIN action target ON coalesce(target.master_id, target.id) = coalesce(self.master_id, self.id)
         AND (target.master_id IS NULL) = (coalesce($3, run.copy) = 'master')
    LEFT JOIN action_version version ON version.id = $4 AND version.action_id = target.id
   WHERE run.app_id = $1 AND run.id = $2`;

interface ReplayedRow {
  payload: string;
  copy: Copy;
  actionId: number | null;
  active: boolean;
  /** A replay is asked for by itself: it is not debounced. */
  waitsFor: "concurrency" | null;
  environment: Environment;
  versionId: number | null;
  /** Its fields are read here: PostgreSQL's ->> refuses JSON that holds \u0000 anywhere. */
  version: { environment: Environment } | null;
}

/** What a replay runs; at most one of `copy` and `versionId` is given. `payload` stands for the run's own unless it is. */
interface ReplayOptions {
  copy?: unknown;
  versionId?: unknown;
  payload?: unknown;
}

const OPTIONS_SHAPE = flat(["copy", "versionId", "payload"]);

function replayOptions(input: unknown): ReplayOptions {
  if (input === undefined || input === null) return {};
  if (isObject(input)) return input;
  refuse("options", "an object", input);
}

export type Replay = ReturnType<typeof createReplay>;

export function createReplay({ db, runs }: { db: DataSource; runs: Runs }) {
  async function find(appId: number, runId: number, copy: Copy | null, versionId: number | null) {
    const storable = Number.isSafeInteger(runId) && runId > 0;
    const [found] = storable ? await rows<ReplayedRow>(db, REPLAYED, [appId, runId, copy, versionId]) : [];
    if (!found) throw new ActionError("RUN_NOT_FOUND");
    if (found.actionId === null) throw new ActionError("ACTION_NOT_FOUND", "the action of that run has no such copy");
    if (versionId !== null && found.versionId === null) throw new ActionError("VERSION_NOT_FOUND");
    const { environment } = found.version ?? found;
    if (environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
    if (!found.active) throw new ActionError("ACTION_INACTIVE");
    return { ...found, actionId: found.actionId };
  }

  /**
   * Runs a past run's payload again, or the one that is given in its place: the copy that ran, unless another or a version is named.
   * A version's code runs as the master does, without being published.
   * @throws RUN_NOT_FOUND, ACTION_NOT_FOUND, VERSION_NOT_FOUND, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, REQUEST_INVALID,
   * PAYLOAD_INVALID
   */
  return async (caller: Caller, appId: number, runId: number, input: unknown): Promise<{ runId: number }> => {
    const options = replayOptions(input);
    const versionId = optionalId(options.versionId, "versionId");
    const wanted = oneOf<Copy>(options.copy, "copy", ["master", "production"]);
    if (versionId !== null && wanted === "production") {
      throw new ActionError("REQUEST_INVALID", "copy must not be production where versionId is given");
    }
    const isChanged = options.payload !== undefined && options.payload !== null;
    const changed = isChanged ? payloadText(options.payload) : null;
    const asked = versionId === null ? wanted : "master";
    const { actionId, payload, copy, waitsFor } = await find(appId, runId, asked, versionId);
    refuseUnknownFields(options, OPTIONS_SHAPE);
    const { personId, credentialId } = caller;
    return runs.submit({
      appId,
      actionId,
      copy: asked ?? copy,
      trigger: "manual",
      payload: changed ?? payload,
      personId,
      credentialId,
      idempotencyKey: null,
      replayOf: runId,
      versionId,
      waitsFor,
    });
  };
}
