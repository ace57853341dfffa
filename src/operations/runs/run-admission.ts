/**
 * Admits queued runs that wait for their `debounce` time or their `concurrency` limit. `concurrency` limits concurrent runs with the same
 * key: their action, and optionally a payload value.
 */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { isInSourceStateSql, setTargetStateSql } from "../../data/run.js";
import { CONCURRENCY_LIMIT_MAX } from "../../limits.js";
import { type ContendingRun, decideRunAdmission, type RunAdmissionDecision } from "../../rules/concurrency.js";
import { QUEUED_RUN_CHANNEL } from "../records/queue-limits.js";
import type { ServiceMetrics } from "../watch/measures.js";
import type { RunRepository } from "./run-repository.js";
import { AWAITED_RUN_CHANNEL, createCancelRunNotice } from "./run-types.js";

/** PostgreSQL channel. A message means that `concurrency_due` or `debounced_run` has a new row, which may be due before all others. */
export const CONCURRENCY_LIMITS_CHANNEL = "svc_limits";

const KEYS_PER_ROUND_MAX = 100;
/** One check of due keys reads at most this many rows. Several rows can contain the same key. */
const DUE_ROWS_READ_MAX = 10_000;
/** A check of a key reads up to this many queued runs, plus the action's limit of concurrent runs. */
const QUEUED_RUNS_READ_MAX = 100;
/** Delay until a key is checked again after a failed check, or after runs were cancelled: a message that cancels a run can be lost. */
const RECHECK_DELAY_SQL = "interval '1 second'";
/** Stored reason of a skipped run. It contains no value of the payload, because secrets in it would not be masked. */
const SKIP_REASON = "concurrency: the action's limit of concurrent runs was reached";

interface ConcurrencyKey {
  actionId: number;
  key: string;
}

/** Selects due keys in rounds: the oldest key of each app, then the second oldest key of each app, and so on. */
const SELECT_DUE_KEYS = `
  SELECT "actionId", key FROM (
    SELECT action_id AS "actionId", encode(key, 'hex') AS key, min(at) AS at,
           row_number() OVER (PARTITION BY app_id ORDER BY min(at)) AS turn
      FROM (SELECT action_id, key, at FROM concurrency_due WHERE at <= now() ORDER BY at LIMIT ${DUE_ROWS_READ_MAX}) AS due
        LEFT JOIN action ON action.id = action_id
     GROUP BY app_id, action_id, key) AS due_keys
   ORDER BY turn, at LIMIT ${KEYS_PER_ROUND_MAX}`;

/** Skips rows that another process is deleting or postponing. */
const POSTPONE_CHECK = `
  UPDATE concurrency_due SET at = now() + ${RECHECK_DELAY_SQL}
   WHERE id = ANY (ARRAY(SELECT id FROM concurrency_due WHERE action_id = $1 AND key = decode($2, 'hex') AND at <= now()
                            FOR UPDATE SKIP LOCKED))`;

const SELECT_KEY_OF_RUN = `SELECT action_id AS "actionId", encode(key, 'hex') AS key FROM run_concurrency WHERE run_id = $1`;

/** A separate statement for the lock: the next statement then sees all changes of the transaction that held this lock before. */
const LOCK_KEY = "SELECT pg_advisory_xact_lock(hashtextextended('svc_concurrency:' || $1::bigint || ':' || $2, 0))";

/**
 * Deletes the requests to check a key, and selects its limit and its runs. A change after this statement requests another check. `BETWEEN`
 * makes PostgreSQL use the index run_concurrency_key.
 */
const SELECT_CONCURRENCY_STATE = `
  WITH seen AS (DELETE FROM concurrency_due WHERE action_id = $1 AND key = decode($2, 'hex') RETURNING 1),
  admitted AS (
    SELECT run_id, policy, admitted FROM run_concurrency
     WHERE action_id = $1 AND key = decode($2, 'hex') AND admitted BETWEEN true AND true
     ORDER BY admitted, run_id LIMIT ${CONCURRENCY_LIMIT_MAX}),
  unadmitted AS (
    SELECT run_id, policy, admitted FROM run_concurrency
     WHERE action_id = $1 AND key = decode($2, 'hex') AND admitted BETWEEN false AND false
     ORDER BY admitted, run_id LIMIT ${QUEUED_RUNS_READ_MAX} + coalesce((SELECT (concurrency->>'limit')::int FROM action WHERE id = $1), 0))
  SELECT (SELECT count(*) FROM seen) AS due,
         (SELECT (concurrency->>'limit')::int FROM action WHERE id = $1) AS "limit",
         (SELECT json_agg(json_build_object('runId', run_id, 'policy', policy, 'admitted', admitted) ORDER BY run_id)
            FROM (SELECT * FROM admitted UNION ALL SELECT * FROM unadmitted) AS contending) AS runs`;

/** Locks the runs $1 in the order of their IDs, to prevent deadlocks. With `= ANY ($1)`, PostgreSQL opens only the partitions of these runs. */
const IS_LOCKED_RUN = `id = ANY ($1::bigint[])
       AND id = ANY (ARRAY(SELECT id FROM run WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE))`;

const IS_WAITING = `${isInSourceStateSql("claim")} AND waits_for = 'concurrency'`;

const ADMIT_RUN = `
  WITH admitted AS (
    UPDATE run SET waits_for = NULL, ready_at = now()
     WHERE ${IS_LOCKED_RUN} AND ${IS_WAITING} RETURNING id, app_id, cause_run_id),
  marked AS (UPDATE run_concurrency SET admitted = true FROM admitted WHERE run_id = admitted.id)
  SELECT count(*) AS "admittedCount", count(pg_notify('${QUEUED_RUN_CHANNEL}', app_id::text)),
         count(pg_notify('${AWAITED_RUN_CHANNEL}', cause_run_id || ':' || id)) FILTER (WHERE cause_run_id IS NOT NULL)
    FROM admitted`;

const SKIP_RUN = `
  UPDATE run SET ${setTargetStateSql("skip")}, reason = '${SKIP_REASON.replaceAll("'", "''")}', finished_at = now(), waits_for = NULL
   WHERE ${IS_LOCKED_RUN} AND ${IS_WAITING} RETURNING id, trigger`;

const ADD_CHECK_REQUEST = `
  INSERT INTO concurrency_due (action_id, key, at) VALUES ($1, decode($2, 'hex'), now() + $3 * ${RECHECK_DELAY_SQL})`;

/** Selects why the run $1 was skipped, and true (`isBlocked`) if the concurrency limit makes it wait until the run $2 has ended. */
const SELECT_CHECKED_RUN = `
  SELECT reason AS "skipReason", EXISTS (
           SELECT FROM run_concurrency AS blocked JOIN run_concurrency AS admitted USING (action_id, key)
            WHERE blocked.run_id = $1 AND NOT blocked.admitted AND admitted.run_id = $2 AND admitted.admitted) AS "isBlocked"
    FROM run WHERE id = $1`;

interface CheckedRun {
  /** Null if the run was not skipped. */
  skipReason: string | null;
  isBlocked: boolean;
}

const RUNS_PER_STATEMENT_MAX = 100;

const SELECT_LOWEST_DEBOUNCED = "SELECT min(run_id) AS id FROM debounced_run";
/** Releases due debounced runs, from the ID $1. Skips locked rows: another transaction releases or cancels them, or replaces their payloads. */
const RELEASE_DUE_RUNS = `
  WITH due AS (
    SELECT debounced.run_id, run.action_id, action.concurrency, svc_run_payload(run.payload, run.event_id) AS payload
      FROM debounced_run AS debounced JOIN run ON run.id = debounced.run_id LEFT JOIN action ON action.id = run.action_id
     WHERE due_at <= clock_timestamp() AND run.id >= $1 ORDER BY due_at LIMIT ${RUNS_PER_STATEMENT_MAX} FOR UPDATE OF debounced, run SKIP LOCKED),
  quiet AS (DELETE FROM debounced_run USING due WHERE debounced_run.run_id = due.run_id),
  released AS (
    UPDATE run SET waits_for = CASE WHEN concurrency IS NOT NULL THEN 'concurrency' END,
                   ready_at = CASE WHEN concurrency IS NULL THEN now() END
      FROM due WHERE run.id = due.run_id AND run.id >= $1 AND run.${isInSourceStateSql("claim")} AND run.waits_for = 'debounce'
    RETURNING run.id, run.app_id, run.action_id, due.payload, concurrency)
  SELECT count(*) AS "releasedCount", count(pg_notify('${QUEUED_RUN_CHANNEL}', app_id::text)) FILTER (WHERE concurrency IS NULL),
         count(svc_count_run(id, action_id, payload, concurrency)) FILTER (WHERE concurrency IS NOT NULL)
    FROM released`;

const SELECT_NEXT_DUE_TIME = `
  SELECT least((SELECT min(due_at) FROM debounced_run), (SELECT min(at) FROM concurrency_due)) AS at, clock_timestamp() AS now`;

export class RunAdmission {
  constructor(
    private readonly db: Db,
    private readonly repository: Pick<RunRepository, "cancelQueued">,
    private readonly measures: Pick<ServiceMetrics, "countTicks">,
    private readonly log: Pick<Logger, "warn">,
  ) {}

  /** Applies the concurrency limit to a new run. `isBlocked` is true if the new run must wait until the run `blockingRunId` has ended. */
  async checkRun(runId: number, blockingRunId: number | null): Promise<CheckedRun | undefined> {
    const [key] = await rows<ConcurrencyKey>(this.db, SELECT_KEY_OF_RUN, [runId]);
    if (key) await this.checkKey(key);
    return (await rows<CheckedRun>(this.db, SELECT_CHECKED_RUN, [runId, blockingRunId]))[0];
  }

  /** Releases due runs and checks due concurrency keys. Returns the next due time as Unix time in milliseconds, or null. */
  readonly releaseDueRuns = async (): Promise<number | null> => {
    for (;;) {
      const [lowest] = await rows<{ id: number | null }>(this.db, SELECT_LOWEST_DEBOUNCED);
      type Released = { releasedCount: number };
      const [released] = lowest!.id === null ? [] : await rows<Released>(this.db, RELEASE_DUE_RUNS, [lowest!.id]);
      const dueKeyCount = await this.checkDueKeys();
      if ((released?.releasedCount ?? 0) < RUNS_PER_STATEMENT_MAX && dueKeyCount === 0) break;
    }
    const [next] = await rows<{ at: Date | null; now: Date }>(this.db, SELECT_NEXT_DUE_TIME);
    return next!.at && Date.now() + Math.max(0, next!.at.getTime() - next!.now.getTime());
  };

  /** Checks due keys, and returns their number. If a check fails, postpones it, so that other keys do not wait for it. */
  async checkDueKeys(): Promise<number> {
    const keys = await rows<ConcurrencyKey>(this.db, SELECT_DUE_KEYS);
    for (const key of keys) {
      try {
        await this.checkKey(key);
      } catch (error) {
        await rows(this.db, POSTPONE_CHECK, [key.actionId, key.key]);
        this.log.warn(
          { err: error, actionId: key.actionId },
          "the check of a concurrency limit failed and is repeated",
        );
      }
    }
    return keys.length;
  }

  private async checkKey(key: ConcurrencyKey): Promise<void> {
    const { cancel, skippedTicks } = await this.db.transaction((manager) => this.checkLockedKey(manager, key));
    if (skippedTicks > 0) this.measures.countTicks("concurrency", skippedTicks);
    for (const { runId, replacedBy: displacedBy } of cancel)
      if (!(await this.repository.cancelQueued(runId, displacedBy)))
        await this.db.query("SELECT pg_notify($1, $2)", createCancelRunNotice(runId, displacedBy));
  }

  private async checkLockedKey(
    manager: EntityManager,
    { actionId, key }: ConcurrencyKey,
  ): Promise<{ cancel: RunAdmissionDecision["cancel"]; skippedTicks: number }> {
    await manager.query(LOCK_KEY, [actionId, key]);
    const [state] = await rows<{ due: number; limit: number | null; runs: ContendingRun[] | null }>(
      manager,
      SELECT_CONCURRENCY_STATE,
      [actionId, key],
    );
    const { due, limit, runs } = state!;
    if (due === 0 || runs === null) return { cancel: [], skippedTicks: 0 };
    const { admit, skip, cancel } = decideRunAdmission(limit ?? Number.MAX_SAFE_INTEGER, runs);
    const areAllRunsRead = runs.filter(({ admitted }) => !admitted).length < QUEUED_RUNS_READ_MAX + (limit ?? 0);
    let needsRecheck = !areAllRunsRead && (limit === null || skip.length + cancel.length > 0);
    // Starts no run if runs must be cancelled but not all runs were read: an unread newer run may replace those that would start.
    if (admit.length > 0 && (areAllRunsRead || cancel.length === 0)) {
      const [admitted] = await rows<{ admittedCount: number }>(manager, ADMIT_RUN, [admit]);
      needsRecheck ||= admitted!.admittedCount < admit.length;
    }
    const skipped = skip.length === 0 ? [] : await rows<{ trigger: string }>(manager, SKIP_RUN, [skip]);
    if (needsRecheck || cancel.length > 0)
      await rows(manager, ADD_CHECK_REQUEST, [actionId, key, needsRecheck ? 0 : 1]);
    return { cancel, skippedTicks: skipped.filter(({ trigger }) => trigger === "schedule").length };
  }
}
