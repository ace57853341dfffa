/**
 * What runs wait for before they wait for a place: a place under their action's limit, and quiet. Each key that a run came to or ended of
 * is looked at once more, one a transaction, so that nobody waits for another in a circle. Knows rows and states, not what a run does.
 */
import type { DataSource, EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { CONCURRENCY_LIMIT_MAX } from "../../limits.js";
import { type ContendingRun, judgeRuns, type Verdict } from "../../rules/concurrency.js";
import { QUEUED_CHANNEL } from "../records/queue-room.js";
import type { Measures } from "../watch/measures.js";
import { displacedEnding } from "./execution.js";
import type { Ledger } from "./ledger.js";
import { AWAITED_CHANNEL, cancelNotice } from "./run-facts.js";

/** Channel of the notice that a run has come or ended which others may wait for. */
export const LIMITS_CHANNEL = "svc_limits";

/** Keys of one look, and debounced runs of one statement. */
const KEYS_AT_ONCE = 100;
const RUNS_AT_ONCE = 100;
/** Of one key's runs that have no place yet, those that are judged at once, beside as many as may have one. */
const JUDGED_AT_ONCE = 100;
/** Runs that make way are asked again after this, should the notice be lost. */
const ASK_AGAIN = "interval '1 second'";

/** Of which action's runs, and which value of the payload's property. */
interface Key {
  actionId: number;
  /** Hexadecimal. */
  key: string;
}

const DUE_KEYS = `
  SELECT DISTINCT action_id AS "actionId", encode(key, 'hex') AS key
    FROM (SELECT action_id, key FROM concurrency_due WHERE at <= now() ORDER BY at LIMIT ${KEYS_AT_ONCE}) AS due`;

const KEY_OF = `SELECT action_id AS "actionId", encode(key, 'hex') AS key FROM run_concurrency WHERE run_id = $1`;

/* Of its own, since a statement sees what was committed before it began: the next one sees what those did who had the lock. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('svc_concurrency:' || $1::bigint || ':' || $2, 0))";

/*
 * What is due is forgotten and read as of one moment: whatever comes later is due anew. `admitted` is a range of one, and the order that of
 * the index run_concurrency_key and of no other: however many runs wait for one key, the planner reads no more than are judged.
 */
const READ = `
  WITH seen AS (DELETE FROM concurrency_due WHERE action_id = $1 AND key = decode($2, 'hex') RETURNING 1),
  admitted AS (
    SELECT run_id, policy, admitted FROM run_concurrency
     WHERE action_id = $1 AND key = decode($2, 'hex') AND admitted BETWEEN true AND true
     ORDER BY admitted, run_id LIMIT ${CONCURRENCY_LIMIT_MAX}),
  others AS (
    SELECT run_id, policy, admitted FROM run_concurrency
     WHERE action_id = $1 AND key = decode($2, 'hex') AND admitted BETWEEN false AND false
     ORDER BY admitted, run_id LIMIT $3 + coalesce((SELECT (concurrency->>'limit')::int FROM action WHERE id = $1), 0))
  SELECT (SELECT count(*) FROM seen) AS due,
         (SELECT (concurrency->>'limit')::int FROM action WHERE id = $1) AS "limit",
         (SELECT json_agg(json_build_object('runId', run_id, 'policy', policy, 'admitted', admitted) ORDER BY run_id)
            FROM (SELECT * FROM admitted UNION ALL SELECT * FROM others) AS contending) AS runs`;

/* Whoever performs runs is woken; a run that asked for one of them, and waits for it, is told. */
const ADMIT = `
  WITH admitted AS (
    UPDATE run SET waits_for = NULL, ready_at = now()
     WHERE id = ANY ($1::bigint[]) AND state = 'queued' AND waits_for = 'concurrency' RETURNING id, app_id, cause_run_id),
  marked AS (UPDATE run_concurrency SET admitted = true FROM admitted WHERE run_id = admitted.id)
  SELECT count(*) AS count, count(pg_notify('${QUEUED_CHANNEL}', app_id::text)),
         count(pg_notify('${AWAITED_CHANNEL}', cause_run_id || ':' || id)) FILTER (WHERE cause_run_id IS NOT NULL)
    FROM admitted`;

const SKIP = `
  UPDATE run SET state = 'skipped', reason = $2, finished_at = now(), waits_for = NULL
   WHERE id = ANY ($1::bigint[]) AND state = 'queued' AND waits_for = 'concurrency' RETURNING id, trigger`;

const DUE_AGAIN = `
  INSERT INTO concurrency_due (action_id, key, at) VALUES ($1, decode($2, 'hex'), now() + $3 * ${ASK_AGAIN})`;

/* Both rows are skipped while somebody has them: a start that is just added, or the run's end. */
const BECOME_QUIET = `
  WITH due AS (
    SELECT debounced.run_id, run.action_id, action.concurrency, svc_run_payload(run.payload, run.event_id) AS payload
      FROM debounced_run AS debounced JOIN run ON run.id = debounced.run_id LEFT JOIN action ON action.id = run.action_id
     WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT ${RUNS_AT_ONCE} FOR UPDATE OF debounced, run SKIP LOCKED),
  quiet AS (DELETE FROM debounced_run USING due WHERE debounced_run.run_id = due.run_id),
  freed AS (
    UPDATE run SET waits_for = CASE WHEN concurrency IS NOT NULL THEN 'concurrency' END,
                   ready_at = CASE WHEN concurrency IS NULL THEN now() END
      FROM due WHERE run.id = due.run_id AND run.state = 'queued' AND run.waits_for = 'debounce'
    RETURNING run.id, run.app_id, run.action_id, due.payload, concurrency)
  SELECT count(*) AS count, count(pg_notify('${QUEUED_CHANNEL}', app_id::text)) FILTER (WHERE concurrency IS NULL),
         count(svc_count_run(id, action_id, payload, concurrency)) FILTER (WHERE concurrency IS NOT NULL)
    FROM freed`;

const NEXT = `
  SELECT least((SELECT min(due_at) FROM debounced_run), (SELECT min(at) FROM concurrency_due)) AS at, clock_timestamp() AS now`;

/** What a look at a key's runs came to. */
interface Judged {
  displaced: Verdict["cancel"];
  ticks: number;
}

export type Waits = ReturnType<typeof createWaits>;

export function createWaits({
  db,
  ledger,
  measures,
}: {
  db: DataSource;
  ledger: Pick<Ledger, "findAny" | "end">;
  measures: Pick<Measures, "ticks">;
}) {
  /**
   * Does what can be done within the transaction. Answers whether there is more to be done at once, and how many ticks it skipped.
   * @param isAll whether all that wait were judged
   */
  async function apply(
    manager: EntityManager,
    verdict: Verdict,
    limit: number | null,
    isAll: boolean,
  ): Promise<{ again: boolean; ticks: number }> {
    const { admit, skip, cancel } = verdict;
    let again = !isAll && (limit === null || skip.length + cancel.length > 0);
    // While runs come faster than they make way, whoever would be admitted may have to as well.
    if (admit.length > 0 && (isAll || cancel.length === 0)) {
      const [admitted] = await rows<{ count: number }>(manager, ADMIT, [admit]);
      again ||= admitted!.count < admit.length;
    }
    const skipped = skip.length === 0 ? [] : await rows<{ trigger: string }>(manager, SKIP, [skip, SKIPPED]);
    return { again, ticks: skipped.filter(({ trigger }) => trigger === "schedule").length };
  }

  /** @returns the runs that are to make way for others, and how many ticks were skipped */
  async function judgeIn(manager: EntityManager, { actionId, key }: Key): Promise<Judged> {
    await manager.query(LOCK, [actionId, key]);
    const values = [actionId, key, JUDGED_AT_ONCE];
    const [found] = await rows<{ due: number; limit: number | null; runs: ContendingRun[] | null }>(
      manager,
      READ,
      values,
    );
    const { due, limit, runs } = found!;
    if (due === 0 || runs === null) return { displaced: [], ticks: 0 };
    const verdict = judgeRuns(limit ?? Number.MAX_SAFE_INTEGER, runs);
    const isAll = runs.filter(({ admitted }) => !admitted).length < JUDGED_AT_ONCE + (limit ?? 0);
    const { again, ticks } = await apply(manager, verdict, limit, isAll);
    if (again) await rows(manager, DUE_AGAIN, [actionId, key, 0]);
    else if (verdict.cancel.length > 0) await rows(manager, DUE_AGAIN, [actionId, key, 1]);
    return { displaced: verdict.cancel, ticks };
  }

  /** Ends a run that waits, and has whoever performs one end it. */
  async function displace({ runId, for: by }: Verdict["cancel"][number]): Promise<void> {
    const run = await ledger.findAny(runId);
    if (run?.state === "queued" && (await ledger.end(runId, null, displacedEnding(run, by)))) return;
    if (run) await db.query("SELECT pg_notify($1, $2)", cancelNotice(runId, by));
  }

  async function judge(key: Key): Promise<void> {
    const { displaced, ticks } = await db.transaction((manager) => judgeIn(manager, key));
    if (ticks > 0) measures.ticks("concurrency", ticks);
    for (const one of displaced) await displace(one);
  }

  return {
    /** Judges a run that was just queued, beside those of its key. */
    async judgeRun(runId: number): Promise<void> {
      const [key] = await rows<Key>(db, KEY_OF, [runId]);
      if (key) await judge(key);
    },

    /** Whether that run waits for the end of the other one, which has a place of its key. */
    async isHeldUpBy(runId: number, other: number): Promise<boolean> {
      const text = `
        SELECT FROM run_concurrency AS its JOIN run_concurrency AS other USING (action_id, key)
         WHERE its.run_id = $1 AND NOT its.admitted AND other.run_id = $2 AND other.admitted`;
      return (await rows(db, text, [runId, other])).length > 0;
    },

    /** Does all that is due. Answers with the Unix time at which more is, in milliseconds, or null. */
    async look(): Promise<number | null> {
      for (;;) {
        const [freed] = await rows<{ count: number }>(db, BECOME_QUIET);
        const keys = await rows<Key>(db, DUE_KEYS);
        for (const key of keys) await judge(key);
        if (freed!.count < RUNS_AT_ONCE && keys.length === 0) break;
      }
      const [next] = await rows<{ at: Date | null; now: Date }>(db, NEXT);
      return next!.at && Date.now() + Math.max(0, next!.at.getTime() - next!.now.getTime());
    },
  };
}

/** Why a run under `skip` did not start. No value of its payload is in it. */
const SKIPPED = "concurrency: as many runs as the action's limit allows were under way";
