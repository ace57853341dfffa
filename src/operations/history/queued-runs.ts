/** Counts the queued runs of an app (its backlog), and cancels them. */
import type { TriggerType } from "../../data/action-types.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { parseOptionalId } from "../../rules/fields.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { recordChange, updateChangeData } from "../records/audit.js";
import type { QueueLimits } from "../records/queue-limits.js";
import { finishRuns } from "../runs/finish.js";
import { createCancelledRunOutcome, createRunEndRecord, EMPTY_PAYLOAD } from "../runs/outcomes.js";
import { createSelectDraftAndLiveIdsSql } from "./run-filter.js";

const BATCH_SIZE = 1_000;
/** Time limit in milliseconds for one request that cancels runs. A further request can cancel the remaining runs. */
const CANCEL_TIMEOUT_MS = 15_000;

/**
 * Backlog of an app. `bytes` is the total size of the payloads. `oldestAt` is the time (ISO 8601) at which the oldest run was queued; null
 * without queued runs.
 */
export interface QueuedRunsSummary {
  runs: number;
  bytes: number;
  oldestAt: string | null;
}

/** Result of cancelling queued runs. `more` is true if queued runs may remain, because the request reached its time limit. */
export interface QueuedRunsCancellation {
  cancelled: number;
  more: boolean;
}

interface QueuedRunRow {
  id: number;
  actionId: number;
  trigger: TriggerType;
  payload: string;
  replayOf: number | null;
}

/** $1 is the app's ID, $2 the last run ID of the previous batch, $3 the action's ID (null: all). Skips runs that a process is claiming. */
const SELECT_QUEUED_RUNS = `
  SELECT id, action_id AS "actionId", trigger, replay_of AS "replayOf",
         CASE WHEN payload::text = '{}' THEN '{}' ELSE '' END AS payload
    FROM run
   WHERE state = 'queued' AND app_id = $1 AND id > $2
     AND ($3::bigint IS NULL OR action_id IN (${createSelectDraftAndLiveIdsSql("$1", "$3")}))
   ORDER BY id LIMIT ${BATCH_SIZE} FOR UPDATE SKIP LOCKED`;

/**
 * Cancels the queued runs of the app or of one action, and writes a log entry for each. Skips runs that a process is claiming. No further
 * batch starts after `isOver` has returned true.
 * @param options.payload payload text of the log entries; null if each entry must refer to the stored payload of its run
 * @param options.recordProgress records the number of cancelled runs so far, in the transaction of each batch
 */
export async function cancelQueuedRuns(
  db: Db,
  appId: number,
  options: {
    actionId?: number | null;
    payload: string | null;
    isOver?: () => boolean;
    recordProgress?: (manager: SqlClient, cancelled: number) => Promise<void>;
  },
): Promise<QueuedRunsCancellation> {
  const { actionId = null, payload, isOver = () => false, recordProgress } = options;
  let [cancelled, after, more] = [0, 0, true];
  while (more && !isOver()) {
    await db.transaction(async (manager) => {
      const queued = await rows<QueuedRunRow>(manager, SELECT_QUEUED_RUNS, [appId, after, actionId]);
      if (queued.length > 0) cancelled += await cancelBatch(manager, queued, payload);
      await recordProgress?.(manager, cancelled);
      after = queued.at(-1)?.id ?? after;
      more = queued.length === BATCH_SIZE;
    });
  }
  return { cancelled, more };
}

export class QueuedRuns {
  constructor(
    private readonly db: Db,
    private readonly queueLimits: QueueLimits,
    private readonly hasSecrets: (appId: number) => Promise<boolean>,
  ) {}

  /** Returns the number, bytes and age of the app's queued runs. If the queue of all apps is long, can return a recent count. */
  async read(appId: number): Promise<QueuedRunsSummary> {
    const depth = (await this.queueLimits.readDepths()).find((appDepth) => appDepth.appId === appId);
    return {
      runs: depth?.runs ?? 0,
      bytes: depth?.bytes ?? 0,
      oldestAt: depth && depth.runs > 0 ? depth.oldestAt.toISOString() : null,
    };
  }

  /**
   * Cancels the queued runs of the app or of one action, and writes a log entry for each. If the app has secrets, the entries contain no
   * payload, because a search for secrets in all payloads would take too long. The audit log gets one entry for the request. Each batch
   * updates this entry in its transaction, so that no run is cancelled without an entry. @throws REQUEST_INVALID
   */
  async cancel(caller: Caller, appId: number, input: { actionId?: unknown }): Promise<QueuedRunsCancellation> {
    const actionId = parseOptionalId(input.actionId, "actionId");
    throwIfUnknownField(caller);
    const payload = (await this.hasSecrets(appId)) ? EMPTY_PAYLOAD : null;
    const deadline = performance.now() + CANCEL_TIMEOUT_MS;
    const isOver = () => performance.now() >= deadline;
    let entryId: number | null = null;
    const recordProgress = async (manager: SqlClient, cancelled: number) => {
      const data = { cancelled, actionId };
      if (entryId !== null) return updateChangeData(manager, entryId, data);
      entryId = await recordChange(manager, caller, { appId, type: "app.runs.cancel", data });
    };
    return cancelQueuedRuns(this.db, appId, { actionId, payload, isOver, recordProgress });
  }
}

async function cancelBatch(
  executor: SqlClient,
  queued: readonly QueuedRunRow[],
  payload: string | null,
): Promise<number> {
  const runs = queued.map((run) =>
    createRunEndRecord(run, null, createCancelledRunOutcome(null), 0, run.payload || payload),
  );
  return (await finishRuns(executor, runs)).filter(Boolean).length;
}
