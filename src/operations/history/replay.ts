/**
 * Runs an action again with the payload of an earlier run or a changed one. The code is the draft, the live version or an older version.
 */
import type { DraftOrLive, Environment } from "../../data/action-types.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { isObject } from "../../rules/describe-value.js";
import { parseOptionalId, refuseField } from "../../rules/fields.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { Enqueuer } from "../runs/enqueue.js";
import { toPayloadText } from "../runs/run-texts.js";
import { parseOptionalDraftOrLive } from "./run-filter.js";

/** Selects the code that a replay runs: the draft ("master"), the live version ("production"), or an older version of the draft. */
const SELECT_REPLAYED_VERSION = `
  SELECT svc_run_payload(run.payload, run.event_id) AS payload, run.copy, target.id AS "actionId", target.active, target.environment,
         CASE WHEN target.concurrency IS NOT NULL THEN 'concurrency' END AS "waitsFor", version.id AS "versionId", version.data AS version
    FROM run
    LEFT JOIN action draft ON draft.master_id IS NULL AND (draft.id = run.action_id OR draft.live_id = run.action_id)
    LEFT JOIN action target ON target.id = CASE coalesce($3, run.copy) WHEN 'master' THEN draft.id ELSE draft.live_id END
    LEFT JOIN action_version version ON version.id = $4 AND version.action_id = target.id
   WHERE run.app_id = $1 AND run.id = $2`;

interface ReplayedRow {
  payload: string;
  copy: DraftOrLive;
  actionId: number | null;
  active: boolean;
  /** "concurrency" if the replay waits for other runs of the action; otherwise null. A replay ignores the action's `debounce`. */
  waitsFor: "concurrency" | null;
  environment: Environment;
  versionId: number | null;
  /** Fields of the older version. JavaScript parses them: PostgreSQL's operator ->> rejects JSON that contains \u0000. */
  version: { environment: Environment } | null;
}

/** Options of a replay. `versionId` selects an older version, and excludes `copy: "production"`. `payload` replaces the earlier payload. */
interface ReplayOptions {
  copy?: unknown;
  versionId?: unknown;
  payload?: unknown;
}

const OPTIONS_SHAPE = createFlatShape(["copy", "versionId", "payload"]);

function requireReplayOptions(input: unknown): ReplayOptions {
  if (input === undefined || input === null) return {};
  if (isObject(input)) return input;
  refuseField("options", "an object", input);
}

export class RunReplayer {
  constructor(
    private readonly db: Db,
    private readonly enqueuer: Enqueuer,
  ) {}

  private async find(appId: number, runId: number, copy: DraftOrLive | null, versionId: number | null) {
    const isStorableId = Number.isSafeInteger(runId) && runId > 0;
    const [replayedRun] = isStorableId
      ? await rows<ReplayedRow>(this.db, SELECT_REPLAYED_VERSION, [appId, runId, copy, versionId])
      : [];
    if (!replayedRun) throw new ActionError("RUN_NOT_FOUND");
    if (replayedRun.actionId === null)
      throw new ActionError(
        "ACTION_NOT_FOUND",
        'the action of this run was deleted or is not published; publish it, or set "copy" to "draft" to run its draft',
      );
    if (versionId !== null && replayedRun.versionId === null) throw new ActionError("VERSION_NOT_FOUND");
    const { environment } = replayedRun.version ?? replayedRun;
    if (environment === "client") throw new ActionError("CLIENT_ACTION_NOT_RUNNABLE");
    if (!replayedRun.active) throw new ActionError("ACTION_INACTIVE");
    return { ...replayedRun, actionId: replayedRun.actionId };
  }

  /**
   * Runs an action again with the payload of an earlier run, or with `payload` if it is set. Uses the draft or live version that ran
   * before, unless `copy` or `versionId` selects another. An older version runs like a draft and is not published.
   * @throws RUN_NOT_FOUND, ACTION_NOT_FOUND, VERSION_NOT_FOUND, CLIENT_ACTION_NOT_RUNNABLE, ACTION_INACTIVE, REQUEST_INVALID,
   *   PAYLOAD_INVALID
   */
  async replay(caller: Caller, appId: number, runId: number, input: unknown): Promise<{ runId: number }> {
    const options = requireReplayOptions(input);
    const versionId = parseOptionalId(options.versionId, "versionId");
    const copyOption = parseOptionalDraftOrLive(options.copy);
    if (versionId !== null && copyOption === "production") {
      throw new ActionError(
        "REQUEST_INVALID",
        '"copy" must not select the live version if "versionId" is set; send only "versionId"',
      );
    }
    const hasPayload = options.payload !== undefined && options.payload !== null;
    const changedPayload = hasPayload ? toPayloadText(options.payload) : null;
    const chosenVersion = versionId === null ? copyOption : "master";
    const { actionId, payload, copy, waitsFor } = await this.find(appId, runId, chosenVersion, versionId);
    refuseUnknownFields(options, OPTIONS_SHAPE);
    const { personId, credentialId } = caller;
    const { id } = await this.enqueuer.queueByActionId({
      appId,
      actionId,
      copy: chosenVersion ?? copy,
      trigger: "manual",
      payload: changedPayload ?? payload,
      personId,
      credentialId,
      idempotencyKey: null,
      replayOf: runId,
      versionId,
      waitsFor,
    });
    return { runId: id };
  }
}
