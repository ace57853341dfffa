/**
 * The ledger: every run is one row before anything comes of it, and ends once, in one state and one log entry. Each verb is one statement,
 * fenced by the holder. Knows SQL and states, not what a run does.
 */
import type { DataSource } from "typeorm";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { RUNNING } from "../../data/run.js";
import { type AskedRun, acceptDebounced, acceptRun, acceptTarget } from "./acceptance.js";
import { createEndings, type Ending } from "./endings.js";
import { createLiveRuns } from "./live-runs.js";
import type { HeldRun, NewRun, RunCode } from "./run-facts.js";

const HELD = `id, app_id AS "appId", action_id AS "actionId", copy, trigger, svc_run_payload(payload, event_id) AS payload,
  person_id AS "personId", credential_id AS "credentialId", replay_of AS "replayOf", version_id AS "versionId",
  started_at AS "startedAt"`;

/* Columns of a claimed run, with the code of its action and the number of its app's last change of secrets: no statement reads them later. */
const CLAIMED = `
  claimed.*, action.name, action.code, action.environment, action.dependencies, action.assets, action.timeout_ms AS "timeoutMs",
  action.integration_origins AS "integrationOrigins", action.source->>'map' AS map, app.secrets_version AS "secretsVersion"`;
const FROM_CLAIMED = `
  FROM claimed JOIN app ON app.id = claimed."appId"
    LEFT JOIN action ON action.id = claimed."actionId" AND claimed."versionId" IS NULL`;

/** A row of `CLAIMED`. The name is null if the action is gone or the run has the code of a version. */
type ClaimedRow = Omit<HeldRun, "code"> & Omit<RunCode, "name"> & { name: string | null };

function claimedRun<Row extends ClaimedRow>(row: Row) {
  const { name, code, environment, dependencies, assets, timeoutMs, integrationOrigins, map, ...run } = row;
  if (name === null) return run;
  return { ...run, code: { name, code, environment, dependencies, assets, timeoutMs, integrationOrigins, map } };
}

/** A scheduled run that no runner took for so long is skipped, not run late. */
const START_LATE = "interval '60 seconds'";

/** Queued, and waiting for nothing but a place. */
const READY = "state = 'queued' AND waits_for IS NULL";

/*
 * Each app that has queued runs, found by one look into the index an app however many wait. `floor`: no queued run is below it.
 * The order is that of the index run_ready and of no other, here and below, and an app is a range of one: whatever the planner believes
 * of how many wait, no index that holds what has ended will do.
 */
const waiting = (floor: string) => `
  waiting (app_id) AS (
    (SELECT app_id FROM run WHERE ${READY} AND id >= ${floor} ORDER BY app_id, id LIMIT 1)
    UNION ALL
    SELECT (SELECT run.app_id FROM run WHERE ${READY} AND run.app_id > waiting.app_id AND id >= ${floor}
             ORDER BY run.app_id, run.id LIMIT 1)
      FROM waiting WHERE waiting.app_id IS NOT NULL)`;
/* The first of an app's queued runs that may start. */
const first = (columns: string, floor: string, most: number) => `
  SELECT ${columns} FROM run
   WHERE ${READY} AND run.app_id BETWEEN waiting.app_id AND waiting.app_id AND id >= ${floor}
     AND NOT (trigger = 'schedule' AND queued_at < now() - ${START_LATE})
   ORDER BY run.app_id, id LIMIT ${most}`;

/*
 * Claims the oldest queued run of the app that has the fewest slots here, of the apps below their share $4: $2 and $3 are the slots of each
 * app. Reads some runs of each app, because other processes may be claiming the first one; never all, because thousands may wait.
 */
const CLAIM = `
  WITH RECURSIVE ${waiting("$5::bigint")},
  busy AS (SELECT * FROM unnest($2::bigint[], $3::int[]) AS busy (app_id, slots)),
  next AS (
    SELECT run.id FROM waiting LEFT JOIN busy USING (app_id)
      CROSS JOIN LATERAL (${first("id", "$5::bigint", 8)}) AS first
      JOIN run ON run.id = first.id
     WHERE waiting.app_id IS NOT NULL AND coalesce(busy.slots, 0) < $4 AND run.${READY} AND run.id >= $5
     ORDER BY coalesce(busy.slots, 0), run.id LIMIT 1 FOR UPDATE OF run SKIP LOCKED),
  claimed AS (
    UPDATE run SET state = 'running', holder = $1, started_at = now()
     WHERE id >= $5 AND id = (SELECT id FROM next) RETURNING ${HELD})
  SELECT ${CLAIMED}, EXISTS (
           SELECT FROM waiting LEFT JOIN busy USING (app_id)
            WHERE waiting.app_id IS NOT NULL AND coalesce(busy.slots, 0) + (waiting.app_id = claimed."appId")::int < $4
         ) AS "isMoreClaimable"
  ${FROM_CLAIMED}`;

/* The longest wait of a run that CLAIM could take, locked by somebody or not; $1 and $2 as $2 and $3 there, $3 the share, $4 the floor. */
const LONGEST_WAIT = `
  WITH RECURSIVE ${waiting("$4::bigint")}
  SELECT coalesce(max(extract(epoch FROM now() - first.since)) * 1000, 0)::float8 AS ms
    FROM waiting LEFT JOIN unnest($1::bigint[], $2::int[]) AS busy (app_id, places) USING (app_id)
    CROSS JOIN LATERAL (${first("coalesce(ready_at, queued_at) AS since", "$4::bigint", 1)}) AS first
   WHERE waiting.app_id IS NOT NULL AND coalesce(busy.places, 0) < $3`;

const CLAIM_ONE = `
  WITH claimed AS (
    UPDATE run SET state = 'running', holder = $1, started_at = now()
     WHERE id = (SELECT id FROM run WHERE id = $2 AND ${READY} FOR UPDATE SKIP LOCKED)
    RETURNING ${HELD})
  SELECT ${CLAIMED} ${FROM_CLAIMED}`;

/* Queued runs that these runs asked for. */
const QUEUED_BY = `
  SELECT id, cause_run_id AS "causeRunId" FROM run
   WHERE ${READY} AND cause_run_id = ANY ($1::bigint[]) ORDER BY id LIMIT 1000`;

const SKIP_LATE = `
  UPDATE run SET state = 'skipped', reason = 'late by more than 60 s', finished_at = now()
   WHERE state = 'queued' AND finished_at IS NULL AND trigger = 'schedule' AND queued_at < now() - ${START_LATE} RETURNING id`;

/* $1 holder, $2 the runs that it knows of. */
const ORPHANS = `SELECT ${HELD} FROM run WHERE holder = $1 AND id <> ALL ($2::bigint[]) ORDER BY id LIMIT 100`;

/* $1 holder, $2 runs that it performs. */
const TAKEN = `
  SELECT id FROM unnest($2::bigint[]) AS performed (id)
   WHERE NOT EXISTS (SELECT FROM run WHERE run.id = performed.id AND run.holder = $1)`;

/* $1 holder. */
const OTHER_RUNNER = `
  SELECT FROM instance WHERE id <> $1 AND 'runner' = ANY (roles) AND lease_until >= now() LIMIT 1`;

const PUT_BACK = `
  UPDATE run SET state = 'queued', holder = NULL, started_at = NULL
   WHERE id = $1 AND holder = $2 AND state = 'running' RETURNING id`;

/**
 * The holder of every run that a browser performs. No process has this id, and none ends such a run as lost. Its row in `instance` has no
 * roles and a lease that never lapses, for processes of the release before.
 */
export const BROWSER_HOLDER = "00000000-0000-4000-8000-0000000c11e7";

/* Runs in browsers that have not ended within $1 milliseconds, locked as below. */
const OVERDUE_IN_BROWSERS = `
  SELECT ${HELD} FROM run
   WHERE ${RUNNING} AND holder = '${BROWSER_HOLDER}' AND started_at < now() - $1 * interval '1 millisecond'
   ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED`;

/* Runs whose holder's lease lapsed, with that holder, locked so that one reaper alone ends each. */
const LOST = `
  SELECT ${HELD}, holder FROM run
   WHERE ${RUNNING}
     AND holder <> '${BROWSER_HOLDER}'
     AND NOT EXISTS (SELECT FROM instance WHERE instance.id = run.holder AND lease_until >= now())
   ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED`;

export interface ClaimedRun extends HeldRun {
  /** True if another queued run may be claimable. */
  isMoreClaimable: boolean;
}

export type Ledger = ReturnType<typeof createLedger>;

export function createLedger(db: DataSource) {
  const endRun = createEndings(db);
  const firstLive = createLiveRuns(db);
  const end = (id: number, holder: string | null, ending: Ending, executor?: Executor): Promise<boolean> =>
    endRun({ ...ending, id, holder }, executor);

  return {
    /**
     * Writes the run's row, running under `holder` or queued when that is null.
     * A repeated idempotency key writes nothing and answers with the first run.
     */
    accept: (run: NewRun, holder: string | null, executor: Executor = db) => acceptRun(executor, run, holder),

    /** The same for an action that is named and found in the same statement. @throws as `findTarget` */
    acceptTarget: (run: AskedRun, holder: string | null, executor: Executor = db) =>
      acceptTarget(executor, run, holder),

    /** The same for a run that is debounced: its payload may become that of one that waits. */
    acceptDebounced: (run: NewRun, manager: Executor) => acceptDebounced(manager, run),

    /**
     * Claims the next queued run; null if none is queued, or each app with queued runs has its share.
     * @param slots slots of each app in this process
     */
    async claim(holder: string, slots: ReadonlyMap<number, number>, share: number): Promise<ClaimedRun | null> {
      const values = [holder, [...slots.keys()], [...slots.values()], share, await firstLive()];
      const [row] = await preparedRows<ClaimedRow & Pick<ClaimedRun, "isMoreClaimable">>(
        db,
        "claim-run",
        CLAIM,
        values,
      );
      return row ? claimedRun(row) : null;
    },

    /** How long the run waits in milliseconds that waits longest of those that `claim` could take; 0 when there is none. */
    async longestWait(places: ReadonlyMap<number, number>, share: number): Promise<number> {
      const values = [[...places.keys()], [...places.values()], share, await firstLive()];
      return (await preparedRows<{ ms: number }>(db, "longest-wait", LONGEST_WAIT, values))[0]!.ms;
    },

    /** True if no other process is alive that performs runs. */
    isOnlyRunner: async (holder: string): Promise<boolean> => (await rows(db, OTHER_RUNNER, [holder])).length === 0,

    /** Whether any run waits for a place, whoever may take it. */
    async anyQueued(): Promise<boolean> {
      const text = `SELECT FROM run WHERE ${READY} AND id >= $1 ORDER BY app_id, id LIMIT 1`;
      return (await preparedRows(db, "any-queued", text, [await firstLive()])).length > 0;
    },

    /** Claims that run; null if it is no longer queued. */
    async claimOne(holder: string, id: number): Promise<HeldRun | null> {
      const [row] = await preparedRows<ClaimedRow>(db, "claim-one", CLAIM_ONE, [holder, id]);
      return row ? claimedRun(row) : null;
    },

    /** The queued runs that those runs asked for. */
    async queuedBy(ids: readonly number[]): Promise<{ id: number; causeRunId: number }[]> {
      return rows(db, QUEUED_BY, [ids]);
    },

    /**
     * Ends a run that `holder` holds (null: one that is queued). false when it had ended or changed hands, or its app's secrets had
     * changed that the end names: then nothing is written.
     */
    end,

    /** Ends every run whose holder is dead with what `ending` says of it. Returns how many. */
    async endLost(ending: (run: HeldRun) => Ending): Promise<number> {
      return db.transaction(async (manager) => {
        const lost = await rows<HeldRun & { holder: string }>(manager, LOST);
        for (const run of lost) await end(run.id, run.holder, ending(run), manager);
        return lost.length;
      });
    },

    /** Ends the runs in browsers that have not ended within `ms`, with what `ending` says of each. Returns how many. */
    async endOverdueInBrowsers(ms: number, ending: (run: HeldRun) => Ending): Promise<number> {
      return db.transaction(async (manager) => {
        const overdue = await rows<HeldRun>(manager, OVERDUE_IN_BROWSERS, [ms]);
        for (const run of overdue) await end(run.id, BROWSER_HOLDER, ending(run), manager);
        return overdue.length;
      });
    },

    /** Runs that `holder` holds beside those that it knows of, some at a time. */
    async orphans(holder: string, known: readonly number[]): Promise<HeldRun[]> {
      return rows(db, ORPHANS, [holder, known]);
    },

    /** Those of the runs that `holder` does not hold any longer. */
    async taken(holder: string, performed: readonly number[]): Promise<number[]> {
      return (await rows<{ id: number }>(db, TAKEN, [holder, performed])).map(({ id }) => id);
    },

    /** Queues a run again that `holder` holds and never began. false when it holds it no longer. */
    async putBack(id: number, holder: string): Promise<boolean> {
      return (await rows(db, PUT_BACK, [id, holder])).length > 0;
    },

    /** Skips the scheduled runs that no runner took in time. Returns how many. */
    async skipLate(): Promise<number> {
      return (await rows(db, SKIP_LATE)).length;
    },

    /** Why that run was skipped; null where it was not. */
    async skipReason(id: number): Promise<string | null> {
      const [run] = await rows<{ reason: string | null }>(db, "SELECT reason FROM run WHERE id = $1", [id]);
      return run?.reason ?? null;
    },

    /** A run of whatever app. */
    async findAny(id: number): Promise<(HeldRun & { state: string }) | null> {
      const text = `SELECT ${HELD}, state FROM run WHERE id = $1`;
      return (await rows<HeldRun & { state: string }>(db, text, [id]))[0] ?? null;
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
