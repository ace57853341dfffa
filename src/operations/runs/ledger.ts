/**
 * The ledger: every run is one row before it starts and ends once, in one state and one log entry. Each verb is one statement,
 * fenced by the holder. Knows SQL and states, not what a run does.
 */
import type { DataSource } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { Copy, TriggerType } from "../../data/action-types.js";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { IDEMPOTENCY_HOURS } from "../../limits.js";
import { type EntryData, LOG_CHANNEL } from "../records/execution-logs.js";

/** What a run evaluates. */
export type RunCode = Pick<ActionRow, "name" | "code" | "environment" | "dependencies">;

/** What a run is, from its acceptance on. `payload` is JSON text. */
interface RunFacts {
  appId: number;
  actionId: number;
  copy: Copy;
  trigger: TriggerType;
  payload: string;
  personId: number | null;
  credentialId: number | null;
  /** As it was found for a run that starts at once; read at the start otherwise. */
  code?: RunCode;
}

/** A run as it is accepted. */
export interface NewRun extends RunFacts {
  idempotencyKey: string | null;
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
}

/** How a run ended: its state, and its log entry. */
export interface Ending {
  state: "completed" | "failed" | "cancelled";
  type: "app.task.completed" | "app.task.failed";
  data: EntryData;
  /** `host:port` of each host that the run contacted. */
  hosts?: readonly string[];
}

const HELD = `id, app_id AS "appId", action_id AS "actionId", copy, trigger, svc_run_payload(payload, event_id) AS payload,
  person_id AS "personId", credential_id AS "credentialId", replay_of AS "replayOf", version_id AS "versionId",
  started_at AS "startedAt"`;

/** A scheduled run that no runner took for so long is skipped, not run late. */
const START_LATE = "interval '60 seconds'";

/* $1..$8 as in NewRun; $9 the holder that starts it at once, or null to queue it; $10 cause, $11 replay of, $12 version. */
const ACCEPT = `
  WITH accepted AS (
    INSERT INTO run (app_id, action_id, copy, trigger, payload, person_id, credential_id, idempotency_key,
                     state, holder, started_at, cause_run_id, chain_id, depth, replay_of, version_id)
    SELECT $1::bigint, $2::bigint, $3, $4, $5::json, $6::bigint, $7::bigint, $8,
           CASE WHEN $9::uuid IS NULL THEN 'queued' ELSE 'running' END, $9::uuid,
           CASE WHEN $9::uuid IS NULL THEN NULL ELSE now() END,
           cause.id, coalesce(cause.chain_id, cause.id), coalesce(cause.depth + 1, 0), $11::bigint, $12::bigint
      FROM (SELECT) AS one LEFT JOIN run AS cause ON cause.id = $10
    ON CONFLICT (action_id, credential_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING id, state)
  SELECT id, CASE WHEN state = 'queued' THEN svc_wake(id) END FROM accepted`;

/*
 * The oldest queued run of the app that has the fewest places here, of those below their share: $2 and $3 say how many each has.
 * Of each app some are looked at, for others may be taking the first at the same moment; never all, since thousands may wait.
 */
const CLAIM = `
  UPDATE run SET state = 'running', holder = $1, started_at = now()
   WHERE id = (
     WITH RECURSIVE waiting (app_id) AS (
       (SELECT app_id FROM run WHERE state = 'queued' ORDER BY app_id LIMIT 1)
       UNION ALL
       SELECT (SELECT run.app_id FROM run WHERE state = 'queued' AND run.app_id > waiting.app_id
                ORDER BY run.app_id LIMIT 1)
         FROM waiting WHERE waiting.app_id IS NOT NULL)
     SELECT run.id FROM waiting
       LEFT JOIN unnest($2::bigint[], $3::int[]) AS busy (app_id, places) USING (app_id)
       CROSS JOIN LATERAL (
         SELECT id FROM run
          WHERE state = 'queued' AND run.app_id = waiting.app_id
            AND NOT (trigger = 'schedule' AND queued_at < now() - ${START_LATE})
          ORDER BY id LIMIT 8) AS first
       JOIN run ON run.id = first.id
      WHERE coalesce(busy.places, 0) < $4 AND run.state = 'queued'
      ORDER BY coalesce(busy.places, 0), run.id LIMIT 1 FOR UPDATE OF run SKIP LOCKED)
  RETURNING ${HELD}`;

/* The longest wait of a run that CLAIM could take, locked by somebody or not; $1 and $2 as $2 and $3 there, $3 the share. */
const LONGEST_WAIT = `
  SELECT coalesce(max(extract(epoch FROM now() - queued_at)) * 1000, 0)::float8 AS ms
    FROM run LEFT JOIN unnest($1::bigint[], $2::int[]) AS busy (app_id, places) USING (app_id)
   WHERE state = 'queued' AND coalesce(busy.places, 0) < $3
     AND NOT (trigger = 'schedule' AND queued_at < now() - ${START_LATE})`;

const CLAIM_ONE = `
  UPDATE run SET state = 'running', holder = $1, started_at = now()
   WHERE id = (SELECT id FROM run WHERE id = $2 AND state = 'queued' FOR UPDATE SKIP LOCKED)
  RETURNING ${HELD}`;

/* Queued runs that these runs asked for. */
const QUEUED_BY = `
  SELECT id, cause_run_id AS "causeRunId" FROM run
   WHERE state = 'queued' AND cause_run_id = ANY ($1::bigint[]) ORDER BY id LIMIT 1000`;

const SKIP_LATE = `
  UPDATE run SET state = 'skipped', reason = 'late by more than 60 s', finished_at = now()
   WHERE state = 'queued' AND trigger = 'schedule' AND queued_at < now() - ${START_LATE}`;

/* $1 holder, $2 the runs that it knows of. */
const ORPHANS = `SELECT ${HELD} FROM run WHERE holder = $1 AND id <> ALL ($2::bigint[]) ORDER BY id LIMIT 100`;

const PUT_BACK = `
  UPDATE run SET state = 'queued', holder = NULL, started_at = NULL
   WHERE id = $1 AND holder = $2 AND state = 'running' RETURNING id`;

/* $1 run, $2 holder or null for a queued run, $3 state, $4 type, $5 data and $6 where the run's payload belongs in it, $7 hosts. */
const END = `
  WITH ended AS (
    UPDATE run SET state = $3, holder = NULL, finished_at = now(), hosts = $7
     WHERE id = $1 AND finished_at IS NULL AND holder IS NOT DISTINCT FROM $2::uuid
    RETURNING id, app_id, action_id),
  touched AS (
    UPDATE action SET last_run_at = now() FROM ended WHERE action.id = ended.action_id AND $2::uuid IS NOT NULL),
  entry AS (
    INSERT INTO execution_log (app_id, task_id, run_id, type, data, payload_at)
    SELECT app_id, action_id, id, $4, $5, $6 FROM ended RETURNING id, app_id, run_id)
  SELECT id, pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id) FROM entry`;

/* Runs whose holder's lease lapsed, with that holder, locked so that one reaper alone ends each. */
const LOST = `
  SELECT ${HELD}, holder FROM run
   WHERE state = 'running'
     AND NOT EXISTS (SELECT FROM instance WHERE instance.id = run.holder AND lease_until >= now())
   ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED`;

export type Ledger = ReturnType<typeof createLedger>;

export function createLedger(db: DataSource) {
  async function end(id: number, holder: string | null, ending: Ending, executor: Executor = db): Promise<boolean> {
    const { state, type, data, hosts = [] } = ending;
    const values = [id, holder, state, type, data.text, data.payloadAt, hosts];
    return (await preparedRows(executor, "end-run", END, values)).length > 0;
  }

  return {
    /**
     * Writes the run's row, running under `holder` or queued when that is null.
     * A repeated idempotency key writes nothing and answers with the first run.
     */
    async accept(
      run: NewRun,
      holder: string | null,
      executor: Executor = db,
    ): Promise<{ id: number; repeated: boolean }> {
      const key = [run.actionId, run.credentialId, run.idempotencyKey];
      for (;;) {
        const [accepted] = await preparedRows<{ id: number }>(executor, "accept-run", ACCEPT, [
          run.appId,
          run.actionId,
          run.copy,
          run.trigger,
          run.payload,
          run.personId,
          run.credentialId,
          run.idempotencyKey,
          holder,
          run.causeRunId ?? null,
          run.replayOf ?? null,
          run.versionId ?? null,
        ]);
        if (accepted) return { id: accepted.id, repeated: false };
        await executor.query(
          `UPDATE run SET idempotency_key = NULL WHERE action_id = $1 AND credential_id = $2 AND idempotency_key = $3
              AND queued_at < now() - interval '${IDEMPOTENCY_HOURS} hours'`,
          key,
        );
        const [first] = await rows<{ id: number }>(
          executor,
          "SELECT id FROM run WHERE action_id = $1 AND credential_id = $2 AND idempotency_key = $3",
          key,
        );
        if (first) return { id: first.id, repeated: true };
      }
    },

    /**
     * Takes the queued run whose turn it is; null when there is none, or each app has its share.
     * @param places how many each app has here
     */
    async claim(holder: string, places: ReadonlyMap<number, number>, share: number): Promise<HeldRun | null> {
      return (await rows<HeldRun>(db, CLAIM, [holder, [...places.keys()], [...places.values()], share]))[0] ?? null;
    },

    /** How long the run waits in milliseconds that waits longest of those that `claim` could take; 0 when there is none. */
    async longestWait(places: ReadonlyMap<number, number>, share: number): Promise<number> {
      return (await rows<{ ms: number }>(db, LONGEST_WAIT, [[...places.keys()], [...places.values()], share]))[0]!.ms;
    },

    /** Takes that run; null when it is queued no longer. */
    async claimOne(holder: string, id: number): Promise<HeldRun | null> {
      return (await rows<HeldRun>(db, CLAIM_ONE, [holder, id]))[0] ?? null;
    },

    /** The queued runs that those runs asked for. */
    async queuedBy(ids: readonly number[]): Promise<{ id: number; causeRunId: number }[]> {
      return rows(db, QUEUED_BY, [ids]);
    },

    /** How many runs caused one another up to this one. */
    async depthOf(id: number): Promise<number> {
      const [run] = await rows<{ depth: number }>(db, "SELECT depth FROM run WHERE id = $1", [id]);
      return run?.depth ?? 0;
    },

    /** Ends a run that `holder` holds (null: one that is queued). false when it had ended or changed hands: then nothing is written. */
    end,

    /** Ends every run whose holder is dead with what `ending` says of it. Returns how many. */
    async endLost(ending: (run: HeldRun) => Ending): Promise<number> {
      return db.transaction(async (manager) => {
        const lost = await rows<HeldRun & { holder: string }>(manager, LOST);
        for (const run of lost) await end(run.id, run.holder, ending(run), manager);
        return lost.length;
      });
    },

    /** Runs that `holder` holds beside those that it knows of, some at a time. */
    async orphans(holder: string, known: readonly number[]): Promise<HeldRun[]> {
      return rows(db, ORPHANS, [holder, known]);
    },

    /** Queues a run again that `holder` holds and never began. false when it holds it no longer. */
    async putBack(id: number, holder: string): Promise<boolean> {
      return (await rows(db, PUT_BACK, [id, holder])).length > 0;
    },

    /** Skips the scheduled runs that no runner took in time. */
    async skipLate(): Promise<void> {
      await db.query(SKIP_LATE);
    },

    async find(appId: number, id: number): Promise<(HeldRun & { state: string; holder: string | null }) | null> {
      const found = await rows<HeldRun & { state: string; holder: string | null }>(
        db,
        `SELECT ${HELD}, state, holder FROM run WHERE app_id = $1 AND id = $2`,
        [appId, id],
      );
      return found[0] ?? null;
    },
  };
}
