/** An app's queued runs as one: how many wait, and all of them cancelled at once. Ends each as a single cancel would. */
import type { DataSource } from "typeorm";
import type { TriggerType } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { optionalId } from "../../rules/fields.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import { audit } from "../records/audit.js";
import { LOG_CHANNEL } from "../records/execution-logs.js";
import type { QueueRoom } from "../records/queue-room.js";
import { cancelledEnding } from "./execution.js";

/** Runs that end in one transaction. */
const BATCH = 1_000;
/** A request goes on for so long: what is left is another request's. */
const LIMIT_MS = 15_000;

/** Runs of an app that wait. `oldestAt` is ISO 8601, null where none waits; `bytes` are those of their payloads. */
export interface Backlog {
  runs: number;
  bytes: number;
  oldestAt: string | null;
}

/** How many runs were cancelled, and whether the time was over before all were. */
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

/* $1 app, $2 the last id that was looked at, $3 the action of either copy or null. Runs that are just being taken are left alone. */
const QUEUED = `
  SELECT id, action_id AS "actionId", trigger, replay_of AS "replayOf",
         CASE WHEN payload::text = '{}' THEN '{}' ELSE '' END AS payload
    FROM run
   WHERE state = 'queued' AND app_id = $1 AND id > $2
     AND ($3::bigint IS NULL OR action_id IN (
       SELECT kin.id FROM action self JOIN action kin ON coalesce(kin.master_id, kin.id) = coalesce(self.master_id, self.id)
        WHERE self.id = $3 AND self.app_id = $1))
   ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`;

const CANCEL = `
  WITH given AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[]) AS given (id, data, payload_at)),
  ended AS (
    UPDATE run SET state = 'cancelled', finished_at = now(), log_id = nextval('execution_log_id_seq')
      FROM given WHERE run.id = given.id AND run.state = 'queued' AND run.id BETWEEN $4 AND $5
    RETURNING run.id, run.app_id, run.action_id, run.log_id, given.data, given.payload_at),
  entry AS (
    INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at)
    SELECT log_id, app_id, action_id, id, 'app.task.failed', data::json, payload_at FROM ended ORDER BY id
    RETURNING id, app_id, run_id)
  SELECT pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id) FROM entry`;

export type Backlogs = ReturnType<typeof createBacklogs>;

export function createBacklogs({ db, queueRoom }: { db: DataSource; queueRoom: QueueRoom }) {
  async function cancelBatch(executor: Executor, appId: number, queued: readonly QueuedRow[]): Promise<number> {
    const endings = queued.map((run) => cancelledEnding({ ...NOTHING_ELSE, ...run, appId }).data);
    const ids = queued.map(({ id }) => id);
    const texts = endings.map(({ text }) => text);
    const places = endings.map(({ payloadAt }) => payloadAt);
    return (await rows(executor, CANCEL, [ids, texts, places, ids[0], ids.at(-1)])).length;
  }

  return {
    /** What waits of the app; counted anew at most once a second, and more seldom where very much does. */
    async of(appId: number): Promise<Backlog> {
      const depth = (await queueRoom.depths()).find((one) => one.appId === appId);
      return {
        runs: depth?.runs ?? 0,
        bytes: depth?.bytes ?? 0,
        oldestAt: depth && depth.runs > 0 ? depth.oldestAt.toISOString() : null,
      };
    },

    /**
     * Cancels what waits of the app, of one action where either copy is named: each run ends in its own log entry, as when it is
     * cancelled alone. @throws REQUEST_INVALID
     */
    async cancel(caller: Caller, appId: number, input: { actionId?: unknown }): Promise<CancelledBacklog> {
      const actionId = optionalId(input.actionId, "actionId");
      reportUnknownField(caller);
      const end = performance.now() + LIMIT_MS;
      let [cancelled, after, more] = [0, 0, true];
      while (more && performance.now() < end) {
        await db.transaction(async (manager) => {
          const queued = await rows<QueuedRow>(manager, QUEUED, [appId, after, actionId]);
          if (queued.length > 0) cancelled += await cancelBatch(manager, appId, queued);
          after = queued.at(-1)?.id ?? after;
          more = queued.length === BATCH;
        });
      }
      await audit(db, caller, { appId, type: "app.runs.cancel", data: { cancelled, actionId } });
      return { cancelled, more };
    },
  };
}

/** What an ending does not say of a run. */
const NOTHING_ELSE = { copy: "master", personId: null, credentialId: null, versionId: null, startedAt: null } as const;
