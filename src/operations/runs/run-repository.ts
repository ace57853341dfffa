/** SQL statements that claim, skip and end runs. Read this file to learn in which order queued runs are claimed. */
import { type Db, isDatabaseUnavailable, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import {
  BROWSER_HOLDER_ID,
  IS_RUNNING_SQL,
  isInSourceStateSql,
  type RunState,
  setTargetStateSql,
} from "../../data/run.js";
import { createBatchProcessor } from "../../engine/batches.js";
import type { RunOutcome } from "../records/execution-logs.js";
import { createOtherRunnerExistsSql } from "../records/queue-limits.js";
import { finishRuns, type RunEndRecord } from "./finish.js";
import {
  BROWSER_REPORT_GRACE_MS,
  createCancelledRunOutcome,
  createFailedOutcome,
  createRunEndRecord,
  EMPTY_PAYLOAD,
  LOST_OUTCOME,
} from "./outcomes.js";
import type { RunRecord } from "./run-types.js";

const RUN_RECORD_COLUMNS = `id, app_id AS "appId", action_id AS "actionId", copy, trigger, coalesce(payload::text, svc_run_payload(NULL, event_id)) AS payload,
  person_id AS "personId", credential_id AS "credentialId", replay_of AS "replayOf", version_id AS "versionId",
  started_at AS "startedAt", traceparent`;

/** Also selects the code and the version of the app's secrets, which saves a statement. Includes runs of deleted apps, which then fail. */
const SELECT_CLAIMED = `
  SELECT claimed.*,
         CASE WHEN claimed."versionId" IS NOT NULL THEN (SELECT data FROM action_version WHERE id = claimed."versionId") ELSE (
           SELECT row_to_json(called)
             FROM (SELECT name, code, environment, dependencies, assets, timeout_ms AS "timeoutMs",
                          integration_origins AS "integrationOrigins", source->>'map' AS map FROM action WHERE id = claimed."actionId") AS called)
         END AS code,
         (SELECT secrets_version FROM app WHERE app.id = claimed."appId") AS "secretsVersion"`;

const LATE_AFTER_INTERVAL = "interval '60 seconds'";
const IS_LATE = `trigger = 'schedule' AND queued_at < now() - ${LATE_AFTER_INTERVAL}`;

const IS_READY = `${isInSourceStateSql("claim")} AND waits_for IS NULL`;

/** `lowestId` is at least this far below the newest run ID, because open transactions may still insert runs with lower IDs. */
const LOWEST_ID_MARGIN = 100_000;

/** Each step of this recursive query finds the oldest queued run of the next app. The order makes PostgreSQL use the index run_ready. */
const createAppsWithQueuedSql = (lowestId: string) => `
  waiting (app_id, id) AS (
    (SELECT app_id, id FROM run WHERE ${IS_READY} AND id >= ${lowestId} ORDER BY app_id, id LIMIT 1)
    UNION ALL
    SELECT next.* FROM waiting CROSS JOIN LATERAL (
      SELECT app_id, id FROM run WHERE ${IS_READY} AND id >= ${lowestId} AND app_id > waiting.app_id ORDER BY app_id, id LIMIT 1) AS next)`;
/** `BETWEEN` with one app, and the order, make PostgreSQL use the index run_ready. */
const createSelectFirstSql = (columns: string, app: string, lowestId: string) => `
  SELECT ${columns} FROM run
   WHERE ${IS_READY} AND id >= ${lowestId} AND app_id BETWEEN ${app} AND ${app} AND NOT (${IS_LATE})
   ORDER BY app_id, id LIMIT 1`;

/** Claims the oldest run of the app that uses the fewest slots. Skips runs that other processes have locked. */
const CLAIM_NEXT_RUN = `
  WITH RECURSIVE ${createAppsWithQueuedSql("$5::bigint")},
  claimable AS (
    SELECT app_id, waiting.id, coalesce(slots, 0) AS slots
      FROM waiting LEFT JOIN unnest($2::bigint[], $3::int[]) AS busy (app_id, slots) USING (app_id)),
  next AS (
    SELECT first.id FROM (SELECT app_id FROM claimable WHERE slots < $4 ORDER BY slots, id) AS app
      CROSS JOIN LATERAL (${createSelectFirstSql("id", "app.app_id", "$5")} FOR UPDATE SKIP LOCKED) AS first LIMIT 1),
  claimed AS (
    UPDATE run SET ${setTargetStateSql("claim")}, holder = $1, started_at = now()
     WHERE id >= $5 AND id = (SELECT id FROM next) RETURNING ${RUN_RECORD_COLUMNS})
  ${SELECT_CLAIMED}, EXISTS (SELECT FROM claimable WHERE slots + (app_id = claimed."appId")::int < $4) AS "isMoreClaimable"
    FROM claimed`;

/** With `BETWEEN`, PostgreSQL opens only the partition of the run. */
const CLAIM_RUN_BY_ID = `
  WITH claimed AS (
    UPDATE run SET ${setTargetStateSql("claim")}, holder = $1, started_at = now()
     WHERE id BETWEEN $2 AND $2 AND id = (SELECT id FROM run WHERE id = $2 AND ${IS_READY} FOR UPDATE SKIP LOCKED)
    RETURNING ${RUN_RECORD_COLUMNS})
  ${SELECT_CLAIMED} FROM claimed`;

/**
 * Selects the longest wait of a run that CLAIM_NEXT_RUN could claim, in milliseconds, and a lower bound of the IDs of queued runs. $1 to $4
 * are $2 to $5 of CLAIM_NEXT_RUN. `BETWEEN` with a single state makes PostgreSQL use the index run_live.
 */
const SELECT_LONGEST_WAIT = `
  WITH RECURSIVE ${createAppsWithQueuedSql("$4::bigint")}
  SELECT coalesce(max(extract(epoch FROM now() - first.since)) * 1000, 0)::float8 AS ms,
         least((SELECT id FROM run WHERE state BETWEEN 'queued' AND 'queued' AND finished_at IS NULL ORDER BY state, id LIMIT 1),
               (SELECT last_value - ${LOWEST_ID_MARGIN} FROM run_id_seq)) AS "lowestId"
    FROM waiting LEFT JOIN unnest($1::bigint[], $2::int[]) AS busy (app_id, slots) USING (app_id)
    CROSS JOIN LATERAL (${createSelectFirstSql("coalesce(ready_at, queued_at) AS since", "waiting.app_id", "$4")}) AS first
   WHERE coalesce(busy.slots, 0) < $3`;

const SELECT_QUEUED_BY_CAUSE = `
  SELECT id, cause_run_id AS "causeRunId" FROM run
   WHERE ${IS_READY} AND cause_run_id = ANY ($1::bigint[]) ORDER BY id LIMIT 1000`;

const RETURN_CLAIM = `
  UPDATE run SET ${setTargetStateSql("returnClaim")}, holder = NULL, started_at = NULL
   WHERE id = $1 AND holder = $2 AND ${isInSourceStateSql("returnClaim")} RETURNING id`;

/** Locks the runs in the order of their IDs, to prevent deadlocks with other statements that lock several runs. */
const SKIP_LATE_RUNS = `
  UPDATE run SET ${setTargetStateSql("skip")}, reason = 'late by more than 60 s', finished_at = now()
   WHERE ${isInSourceStateSql("skip")} AND finished_at IS NULL
     AND id = ANY (ARRAY(SELECT id FROM run WHERE ${isInSourceStateSql("skip")} AND finished_at IS NULL AND ${IS_LATE}
                          ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))
  RETURNING id`;

const SELECT_HELD_DIFFERENCES = `
  SELECT coalesce(held.id, known.id) AS id, held.id IS NOT NULL AS "isHeld"
    FROM (SELECT id FROM run WHERE holder = $1) AS held FULL JOIN unnest($2::bigint[]) AS known (id) ON known.id = held.id
   WHERE held.id IS NULL OR known.id IS NULL`;

const createSelectRunningSql = (condition: string) => `
  SELECT ${RUN_RECORD_COLUMNS}, holder FROM run WHERE ${IS_RUNNING_SQL} AND ${condition} ORDER BY id LIMIT 100`;
const SELECT_OVERDUE_IN_BROWSERS = createSelectRunningSql(
  `holder = '${BROWSER_HOLDER_ID}' AND started_at < now() - $1 * interval '1 millisecond'`,
);
const SELECT_LOST_RUNS = createSelectRunningSql(`holder <> '${BROWSER_HOLDER_ID}'
     AND NOT EXISTS (SELECT FROM instance WHERE instance.id = run.holder AND lease_until >= now())`);

const ENDS_PER_STATEMENT_MAX = 8;
/** A longer log entry gets its own statement, so that the ends of other runs are not delayed. */
const BATCHED_MAX_CHARACTERS = 64 * 1024;

export interface ClaimedRun extends RunRecord {
  isMoreClaimable: boolean;
}

export class RunRepository {
  private readonly endBatches = createBatchProcessor<RunEndRecord, boolean>({
    processBatch: (runs) => finishRuns(this.db, runs),
    maxItems: ENDS_PER_STATEMENT_MAX,
    // Runs that end during a statement share the next one, so fewer statements are executed than with several at once.
    maxConcurrentCalls: 1,
    isCausedByOneItem: (error) => !isDatabaseUnavailable(error),
  });
  /** Lower bound of the IDs of queued runs, with which claims skip partitions of earlier days. `findLongestWait` updates it. */
  private lowestId = Number.MIN_SAFE_INTEGER;

  /** @param maskPayload returns the payload text for a run's log entry; null if the entry can refer to the run's stored payload */
  constructor(
    private readonly db: Db,
    private readonly maskPayload: (run: RunRecord) => Promise<string | null> = async () => EMPTY_PAYLOAD,
  ) {}

  /** Claims the next run. @param usedSlots used slots of this process by app ID @param slotLimit an app with this many gets no run */
  async claim(holder: string, usedSlots: ReadonlyMap<number, number>, slotLimit: number): Promise<ClaimedRun | null> {
    const values = [holder, [...usedSlots.keys()], [...usedSlots.values()], slotLimit, this.lowestId];
    return (await queryPreparedRows<ClaimedRun>(this.db, "claim-run", CLAIM_NEXT_RUN, values))[0] ?? null;
  }

  async claimById(holder: string, id: number): Promise<RunRecord | null> {
    return (await queryPreparedRows<RunRecord>(this.db, "claim-by-id", CLAIM_RUN_BY_ID, [holder, id]))[0] ?? null;
  }

  /** Returns the longest wait, in milliseconds, of a run that `claim` could return; 0 if there is none. Call this method every second. */
  async findLongestWait(usedSlots: ReadonlyMap<number, number>, slotLimit: number): Promise<number> {
    const values = [[...usedSlots.keys()], [...usedSlots.values()], slotLimit, this.lowestId];
    type Row = { ms: number; lowestId: number };
    const [row] = await queryPreparedRows<Row>(this.db, "longest-wait", SELECT_LONGEST_WAIT, values);
    this.lowestId = row!.lowestId;
    return row!.ms;
  }

  async isOnlyRunner(holder: string): Promise<boolean> {
    return (await rows(this.db, `SELECT WHERE ${createOtherRunnerExistsSql("$1")}`, [holder])).length === 0;
  }

  /** Returns up to 1,000 runs that the runs `ids` have called, and that are ready to start. */
  findQueuedByCause(ids: readonly number[]): Promise<{ id: number; causeRunId: number }[]> {
    return rows(this.db, SELECT_QUEUED_BY_CAUSE, [ids]);
  }

  /** Ends a run, unless it has ended, `run.holder` does not hold it, or the secrets are not those of `run.secretsVersion`: then false. */
  async finish(run: RunEndRecord, executor?: SqlClient): Promise<boolean> {
    const { text } = run.data;
    if (!executor && text.length <= BATCHED_MAX_CHARACTERS) return this.endBatches.add(run);
    try {
      return (await finishRuns(executor ?? this.db, [run]))[0]!;
    } finally {
      // Frees a large result at once, not at the next full garbage collection. Skips a buffer that shares its memory with others.
      if (Buffer.isBuffer(text) && text.byteLength === text.buffer.byteLength) (text.buffer as ArrayBuffer).transfer(0);
    }
  }

  /** Ends a run with an outcome that its code did not return. Returns false in the same cases as `finish`. */
  async finishWithoutCode(run: RunRecord, holder: string | null, outcome: RunOutcome): Promise<boolean> {
    const durationMs = run.startedAt ? Date.now() - run.startedAt.getTime() : 0;
    const payload = holder === BROWSER_HOLDER_ID ? null : await this.maskPayload(run);
    return this.finish(createRunEndRecord(run, holder, outcome, durationMs, payload));
  }

  /** Returns false if the run is not queued (any more). @param displacedBy ID of the run that replaces this run, or null */
  async cancelQueued(id: number, displacedBy: number | null = null): Promise<boolean> {
    const run = await this.find(id);
    return run?.state === "queued" && this.finishWithoutCode(run, null, createCancelledRunOutcome(displacedBy));
  }

  /** Ends up to 100 runs of processes whose lease has expired. Returns the number of these runs. */
  finishLost(): Promise<number> {
    return this.finishEach(SELECT_LOST_RUNS, [], LOST_OUTCOME);
  }

  /** Ends up to 100 runs that started in a browser more than `timeoutMs` plus BROWSER_REPORT_GRACE_MS ago. */
  async finishOverdueInBrowsers(timeoutMs: number): Promise<void> {
    const message = `the page did not report the end of the run within ${timeoutMs / 1000} seconds; the page was closed, or the code still runs`;
    const values = [timeoutMs + BROWSER_REPORT_GRACE_MS];
    await this.finishEach(SELECT_OVERDUE_IN_BROWSERS, values, createFailedOutcome("TimeoutError", message));
  }

  /** Ends the selected runs. Returns the number of runs that this process ended: another process may have ended some of them first. */
  private async finishEach(select: string, values: unknown[], outcome: RunOutcome): Promise<number> {
    let count = 0;
    for (const run of await rows<RunRecord & { holder: string }>(this.db, select, values))
      if (await this.finishWithoutCode(run, run.holder, outcome)) count += 1;
    return count;
  }

  /** Returns the runs that the process `holder` holds but that are not among `knownIds`, and those of `knownIds` that it does not hold. */
  findHeldDifferences(holder: string, knownIds: readonly number[]): Promise<{ id: number; isHeld: boolean }[]> {
    return rows(this.db, SELECT_HELD_DIFFERENCES, [holder, knownIds]);
  }

  /** Queues a claimed run again. Returns false if the process `holder` no longer holds it. */
  async returnClaim(id: number, holder: string): Promise<boolean> {
    return (await rows(this.db, RETURN_CLAIM, [id, holder])).length > 0;
  }

  /** Returns the number of skipped runs. */
  async skipLateRuns(): Promise<number> {
    return (await rows(this.db, SKIP_LATE_RUNS)).length;
  }

  async isUnfinished(id: number, appId: number): Promise<boolean> {
    const sql = "SELECT FROM run WHERE id = $1 AND app_id = $2 AND finished_at IS NULL";
    return (await queryPreparedRows(this.db, "unfinished-run", sql, [id, appId])).length > 0;
  }

  async find(id: number, appId: number | null = null): Promise<(RunRecord & { state: RunState }) | null> {
    const sql = `SELECT ${RUN_RECORD_COLUMNS}, state FROM run WHERE id = $1 AND ($2::bigint IS NULL OR app_id = $2)`;
    return (await rows<RunRecord & { state: RunState }>(this.db, sql, [id, appId]))[0] ?? null;
  }
}
