/** Counts the queued runs of an app (its backlog), and cancels all of them. */
import type { DataSource } from "typeorm";
import type { TriggerType } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { parseOptionalId } from "../../rules/fields.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import { recordChange } from "../records/audit.js";
import type { QueueLimits } from "../records/queue-limits.js";
import { finishRuns } from "./finish.js";
import { cancelledEnding, EMPTY_PAYLOAD } from "./outcomes.js";
import { selectVersions } from "./run-filter.js";

/** Maximum number of runs that are cancelled in one transaction. */
const BATCH = 1_000;
/** Time limit of one request. Another request can cancel the remaining runs. */
const LIMIT_MS = 15_000;

/** Queued runs of an app. `oldestAt` is ISO 8601, null if there are none; `bytes` is the size of their payloads. */
export interface Backlog {
  runs: number;
  bytes: number;
  oldestAt: string | null;
}

/**
 * Number of cancelled runs. `more` is true if queued runs are left, because the time limit of the request was reached.
 */
export interface CancelledBacklog {
  cancelled: number;
  more: boolean;
}

interface QueuedRow {
  id: number;
  actionId: number;
  trigger: TriggerType;
  payload: string;
  replayOf: number | null;
}

/**
 * Selects queued runs. $1 is the app, $2 the last ID of the previous batch, $3 an action or null. Runs that are being
 * claimed are skipped.
 */
const SELECT_QUEUED_RUNS = `
  SELECT id, action_id AS "actionId", trigger, replay_of AS "replayOf",
         CASE WHEN payload::text = '{}' THEN '{}' ELSE '' END AS payload
    FROM run
   WHERE state = 'queued' AND app_id = $1 AND id > $2
     AND ($3::bigint IS NULL OR action_id IN (${selectVersions("$1", "$3")}))
   ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`;

export class Backlogs {
  constructor(
    private readonly db: DataSource,
    private readonly queueLimits: QueueLimits,
    private readonly hasSecrets: (appId: number) => Promise<boolean>,
  ) {}

  /** Returns the backlog. It is counted at most once a second, and less often if counting takes long. */
  async read(appId: number): Promise<Backlog> {
    const depth = (await this.queueLimits.depths()).find((other) => other.appId === appId);
    return {
      runs: depth?.runs ?? 0,
      bytes: depth?.bytes ?? 0,
      oldestAt: depth && depth.runs > 0 ? depth.oldestAt.toISOString() : null,
    };
  }

  /**
   * Cancels the queued runs of the app, or of one action. Each run gets its own log entry. If the app has secrets, the
   * entries have no payload: to search all payloads for secrets would take too long.
   * @throws REQUEST_INVALID
   */
  async cancel(caller: Caller, appId: number, input: { actionId?: unknown }): Promise<CancelledBacklog> {
    const actionId = parseOptionalId(input.actionId, "actionId");
    reportUnknownField(caller);
    const payload = (await this.hasSecrets(appId)) ? EMPTY_PAYLOAD : null;
    const deadline = performance.now() + LIMIT_MS;
    let [cancelled, after, more] = [0, 0, true];
    while (more && performance.now() < deadline) {
      await this.db.transaction(async (manager) => {
        const queued = await rows<QueuedRow>(manager, SELECT_QUEUED_RUNS, [appId, after, actionId]);
        if (queued.length > 0) cancelled += await cancelBatch(manager, appId, queued, payload);
        after = queued.at(-1)?.id ?? after;
        more = queued.length === BATCH;
      });
    }
    await recordChange(this.db, caller, { appId, type: "app.runs.cancel", data: { cancelled, actionId } });
    return { cancelled, more };
  }
}

/** Placeholders for the fields of a run that a cancellation does not read. */
const UNUSED_FACTS = { copy: "master", personId: null, credentialId: null, versionId: null, startedAt: null } as const;

async function cancelBatch(
  executor: Executor,
  appId: number,
  queued: readonly QueuedRow[],
  payload: string | null,
): Promise<number> {
  const runs = queued.map((run) => {
    const ending = cancelledEnding({ ...UNUSED_FACTS, ...run, appId }, run.payload || payload);
    return { ...ending, id: run.id, holder: null };
  });
  return (await finishRuns(executor, runs)).filter(Boolean).length;
}
