/**
 * Admits, skips and cancels queued runs by the `concurrency` of their action. A limit applies to all runs with the same
 * key (the action, and optionally a value of the payload). A key is checked in its own transaction when one of its runs
 * is queued or ends, so that transactions cannot deadlock. `Debouncer.releaseDue` checks keys that become due for other
 * reasons.
 */
import type { DataSource, EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { startStateSql, toState } from "../../data/run.js";
import { CONCURRENCY_LIMIT_MAX } from "../../limits.js";
import { type AdmissionDecision, type ContendingRun, decideAdmission } from "../../rules/concurrency.js";
import { QUEUED_CHANNEL } from "../records/queue-limits.js";
import type { ServiceMeasures } from "../watch/measures.js";
import { cancelledEnding } from "./outcomes.js";
import type { RunRepository } from "./run-repository.js";
import { AWAITED_CHANNEL, cancelNotice } from "./run-types.js";

/**
 * Notification channel: a message means that a run was queued or has ended, so that other runs with its key may be
 * admitted.
 */
export const LIMITS_CHANNEL = "svc_limits";

/** Maximum number of keys in one round. */
const KEYS_MAX = 100;
/** Number of runs of a key that are checked at once, in addition to the number that may be admitted. */
const RUNS_MAX = 100;
/**
 * Time after which runs that must be cancelled for other runs are checked again, because a notification can be lost.
 */
const RECHECK_AFTER = "interval '1 second'";
/** Reason of a skipped run. It is stored, so it contains no value of the payload. */
const SKIP_REASON = "concurrency: the action's limit of concurrent runs was reached";

interface Key {
  actionId: number;
  /** Digest of the key in hexadecimal. */
  key: string;
}

const DUE_KEYS = `
  SELECT DISTINCT action_id AS "actionId", encode(key, 'hex') AS key
    FROM (SELECT action_id, key FROM concurrency_due WHERE at <= now() ORDER BY at LIMIT ${KEYS_MAX}) AS due`;

const KEY_OF_RUN = `SELECT action_id AS "actionId", encode(key, 'hex') AS key FROM run_concurrency WHERE run_id = $1`;

/**
 * Locks a key in a separate statement, so that the next statement sees all that the previous lock holder has committed.
 */
const LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('svc_concurrency:' || $1::bigint || ':' || $2, 0))";

/**
 * Deletes the due rows of a key and reads its runs in one snapshot: a change after the snapshot makes the key due
 * again. `BETWEEN true AND true` and the order match the index run_concurrency_key, so that PostgreSQL reads only the
 * rows that are checked.
 */
const SELECT_CONCURRENCY_STATE = `
  WITH seen AS (DELETE FROM concurrency_due WHERE action_id = $1 AND key = decode($2, 'hex') RETURNING 1),
  admitted AS (
    SELECT run_id, policy, admitted FROM run_concurrency
     WHERE action_id = $1 AND key = decode($2, 'hex') AND admitted BETWEEN true AND true
     ORDER BY admitted, run_id LIMIT ${CONCURRENCY_LIMIT_MAX}),
  others AS (
    SELECT run_id, policy, admitted FROM run_concurrency
     WHERE action_id = $1 AND key = decode($2, 'hex') AND admitted BETWEEN false AND false
     ORDER BY admitted, run_id LIMIT ${RUNS_MAX} + coalesce((SELECT (concurrency->>'limit')::int FROM action WHERE id = $1), 0))
  SELECT (SELECT count(*) FROM seen) AS due,
         (SELECT (concurrency->>'limit')::int FROM action WHERE id = $1) AS "limit",
         (SELECT json_agg(json_build_object('runId', run_id, 'policy', policy, 'admitted', admitted) ORDER BY run_id)
            FROM (SELECT * FROM admitted UNION ALL SELECT * FROM others) AS contending) AS runs`;

const IS_WAITING = `${startStateSql("claim")} AND waits_for = 'concurrency'`;

/* Admits runs. Notifies the runners, and the process of a run that waits for one of the admitted runs. */
const ADMIT_RUN = `
  WITH admitted AS (
    UPDATE run SET waits_for = NULL, ready_at = now()
     WHERE id = ANY ($1::bigint[]) AND ${IS_WAITING} RETURNING id, app_id, cause_run_id),
  marked AS (UPDATE run_concurrency SET admitted = true FROM admitted WHERE run_id = admitted.id)
  SELECT count(*) AS count, count(pg_notify('${QUEUED_CHANNEL}', app_id::text)),
         count(pg_notify('${AWAITED_CHANNEL}', cause_run_id || ':' || id)) FILTER (WHERE cause_run_id IS NOT NULL)
    FROM admitted`;

const SKIP_RUN = `
  UPDATE run SET ${toState("skip")}, reason = '${SKIP_REASON.replaceAll("'", "''")}', finished_at = now(), waits_for = NULL
   WHERE id = ANY ($1::bigint[]) AND ${IS_WAITING} RETURNING id, trigger`;

const CHECK_AGAIN = `
  INSERT INTO concurrency_due (action_id, key, at) VALUES ($1, decode($2, 'hex'), now() + $3 * ${RECHECK_AFTER})`;

const IS_BLOCKED_BY = `
  SELECT FROM run_concurrency AS blocked JOIN run_concurrency AS admitted USING (action_id, key)
   WHERE blocked.run_id = $1 AND NOT blocked.admitted AND admitted.run_id = $2 AND admitted.admitted`;

export class ConcurrencyLimiter {
  constructor(
    private readonly db: DataSource,
    private readonly repository: Pick<RunRepository, "find" | "finish" | "maskedPayload">,
    private readonly measures: Pick<ServiceMeasures, "ticks">,
  ) {}

  /** Checks a run that was just queued, together with the other runs of its key. */
  async checkRun(runId: number): Promise<void> {
    const [key] = await rows<Key>(this.db, KEY_OF_RUN, [runId]);
    if (key) await this.checkKey(key);
  }

  /** Checks the keys that are due. Returns the number of checked keys. */
  async checkDueKeys(): Promise<number> {
    const keys = await rows<Key>(this.db, DUE_KEYS);
    for (const key of keys) await this.checkKey(key);
    return keys.length;
  }

  /** True if the run cannot be admitted before the run `other` ends. */
  async isBlockedBy(runId: number, other: number): Promise<boolean> {
    return (await rows(this.db, IS_BLOCKED_BY, [runId, other])).length > 0;
  }

  private async checkKey(key: Key): Promise<void> {
    const { cancel, skippedTicks } = await this.db.transaction((manager) => this.checkLocked(manager, key));
    if (skippedTicks > 0) this.measures.ticks("concurrency", skippedTicks);
    for (const run of cancel) await this.cancel(run);
  }

  /** Decides about the runs of a locked key. Returns the runs to cancel and the number of skipped ticks. */
  private async checkLocked(
    manager: EntityManager,
    { actionId, key }: Key,
  ): Promise<{ cancel: AdmissionDecision["cancel"]; skippedTicks: number }> {
    await manager.query(LOCK, [actionId, key]);
    const [read] = await rows<{ due: number; limit: number | null; runs: ContendingRun[] | null }>(
      manager,
      SELECT_CONCURRENCY_STATE,
      [actionId, key],
    );
    const { due, limit, runs } = read!;
    if (due === 0 || runs === null) return { cancel: [], skippedTicks: 0 };
    const { admit, skip, cancel } = decideAdmission(limit ?? Number.MAX_SAFE_INTEGER, runs);
    const isAll = runs.filter(({ admitted }) => !admitted).length < RUNS_MAX + (limit ?? 0);
    let isMore = !isAll && (limit === null || skip.length + cancel.length > 0);
    // If more runs wait than were read, the newer ones may replace the runs to admit, so nothing is admitted yet.
    if (admit.length > 0 && (isAll || cancel.length === 0)) {
      const [admitted] = await rows<{ count: number }>(manager, ADMIT_RUN, [admit]);
      isMore ||= admitted!.count < admit.length;
    }
    const skipped = skip.length === 0 ? [] : await rows<{ trigger: string }>(manager, SKIP_RUN, [skip]);
    if (isMore) await rows(manager, CHECK_AGAIN, [actionId, key, 0]);
    else if (cancel.length > 0) await rows(manager, CHECK_AGAIN, [actionId, key, 1]);
    return { cancel, skippedTicks: skipped.filter(({ trigger }) => trigger === "schedule").length };
  }

  /** Cancels a queued run here, or a running one in the process that executes it. */
  private async cancel({ runId, for: by }: AdmissionDecision["cancel"][number]): Promise<void> {
    const run = await this.repository.find(runId);
    if (run?.state === "queued") {
      const ending = cancelledEnding(run, await this.repository.maskedPayload(run), by);
      if (await this.repository.finish(runId, null, ending)) return;
    }
    if (run) await this.db.query("SELECT pg_notify($1, $2)", cancelNotice(runId, by));
  }
}
