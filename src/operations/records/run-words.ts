/**
 * Searches runs by words in their payload, result, error, console lines and hosts. A background job indexes the words of ended runs in
 * batches, so that no run waits for the index.
 */
import type { EntityManager } from "typeorm";
import { AdaptiveBatchSize } from "../../data/batches.js";
import {
  type Db,
  isInternalDatabaseError,
  isInvalidDataError,
  isStatementTimeout,
  queryPreparedRows,
  rows,
} from "../../data/database.js";
import { listPartitions, type Partition } from "../../data/partitions.js";
import { ActionError } from "../../errors.js";
import { RUN_SEARCH_TEXT_MAX_CHARACTERS, RUN_SEARCH_TIMEOUT_MS } from "../../limits.js";

const RUNS_PER_BATCH = 500;
/** Time limit of a batch. After a failed batch, the next one has half as many runs. */
const BATCH_TIMEOUT_MS = 5_000;
const WORDS_PER_RUN_MAX = 5_000;
const INDEX_INTERVAL_MS = 2_000;
/**
 * Each batch of recently ended runs also includes runs that ended up to this long before the end of the previous batch. Their transactions
 * may have been committed late.
 */
const OVERTAKEN_INTERVAL = "interval '60 seconds'";
const WORD_MAX_CHARACTERS = 64;
/** Number of the newest runs that a search reads without the index. */
const UNINDEXED_SEARCH_RUNS = 2_000;
const FIRST_ID_RANGE = 200_000;
const ID_RANGE_GROWTH = 4;
const CONSOLE_LINES_MAX = 500;

const RUN_WORDS_SQL = `
  array_to_tsvector(('@' || run.app_id) || (tsvector_to_array(svc_search_words(run.app_id, concat_ws(' ',
    left(svc_entry_data(entry.data, entry.payload_at, run.id), ${RUN_SEARCH_TEXT_MAX_CHARACTERS}),
    left((SELECT string_agg(text, ' ' ORDER BY seq) FROM console_line
           WHERE run_id = run.id AND seq < ${CONSOLE_LINES_MAX}), ${RUN_SEARCH_TEXT_MAX_CHARACTERS}),
    run.reason, array_to_string(run.hosts, ' ')))))[1:${WORDS_PER_RUN_MAX}])`;

const JOIN_LOG_ENTRY_SQL = `
  LEFT JOIN execution_log AS entry
    ON entry.id = coalesce(run.log_id, (SELECT id FROM execution_log AS old WHERE old.run_id = run.id LIMIT 1))`;

/* $2 is the maximum number of runs. */
const createSelectDueRunsSql = (condition: string, order: "ASC" | "DESC") => `
  SELECT id, app_id, hosts, reason, log_id, finished_at FROM run
   WHERE ${condition} AND NOT EXISTS (SELECT FROM run_search WHERE run_search.run_id = run.id)
   ORDER BY finished_at ${order}, id ${order} LIMIT $2::int`;
const createIndexRunsSql = (...due: Parameters<typeof createSelectDueRunsSql>) => `
  WITH due AS (${createSelectDueRunsSql(...due)}),
  written AS (
    INSERT INTO run_search (run_id, words)
    SELECT run.id, ${RUN_WORDS_SQL} FROM due AS run ${JOIN_LOG_ENTRY_SQL} ON CONFLICT DO NOTHING)
  SELECT count(*) AS count, min(finished_at)::text AS first, max(finished_at)::text AS last FROM due`;

/** $1, the end of the last batch, is text, because times of PostgreSQL are more precise than those of JavaScript. */
const NEWER_RUNS = [`finished_at > $1::timestamptz - ${OVERTAKEN_INTERVAL}`, "ASC"] as const;
const OLDER_RUNS = ["finished_at <= $1::timestamptz", "DESC"] as const;
const INDEX_RUNS = { newer: createIndexRunsSql(...NEWER_RUNS), older: createIndexRunsSql(...OLDER_RUNS) };
const SELECT_DUE_RUNS = { newer: createSelectDueRunsSql(...NEWER_RUNS), older: createSelectDueRunsSql(...OLDER_RUNS) };
/* Indexes the run with the ID $1. */
const INDEX_RUN = createIndexRunsSql("id = $1::bigint", "ASC");
/* Later batches leave out runs that have a row in `run_search`. */
const SKIP_RUN = "INSERT INTO run_search (run_id, words) SELECT id, '' FROM run WHERE id = $1 ON CONFLICT DO NOTHING";

/**
 * Finds common words fast, without the index of words. A search runs this statement first. If it finds too few runs, the search also runs
 * SEARCH_BY_WORDS, which finds rare words fast. PostgreSQL's planner cannot choose between the two.
 */
const SEARCH_NEWEST_RUNS = `
  SELECT run_id AS id FROM (SELECT run_id, words FROM run_search WHERE run_id < $3 ORDER BY run_id DESC LIMIT ${UNINDEXED_SEARCH_RUNS}) AS newest
   WHERE words @@ $1::tsquery ORDER BY run_id DESC LIMIT $2`;
/**
 * Searches IDs from $4 to below $3. The planner cannot use the index of IDs for `run_id + 0`, so it uses the index of words. $6 and $5 are
 * the bounds of the partitions that contain the range. PostgreSQL reads no other partition.
 */
const SEARCH_BY_WORDS = `
  SELECT run_id AS id FROM run_search
   WHERE words @@ $1::tsquery AND run_id + 0 < $3 AND run_id + 0 >= $4 AND run_id < $5 AND run_id >= $6 ORDER BY run_id DESC LIMIT $2`;
/** Starting parallel workers would take longer than the search. */
const WITHOUT_PARALLEL_WORKERS = "SET LOCAL max_parallel_workers_per_gather = 0";
const USE_INDEX_OF_WORDS = `SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = off; ${WITHOUT_PARALLEL_WORKERS}`;
const SELECT_HIGHEST_ID = "SELECT max(run_id) AS id FROM run_search WHERE run_id < $1";

/** Tests for database errors that the data of a single run can cause. */
const RUN_FAULT_TESTS = [isStatementTimeout, isInvalidDataError, isInternalDatabaseError];

interface IndexedBatch {
  count: number;
  first: string | null;
  last: string | null;
}

/** Returns a text search query: each searched word must be the beginning of a word of the run. Null if there is no word. */
function createTextSearchQuery(appId: number, search: string): string | null {
  const searchWords = search
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they separate words, as in svc_search_words
    .split(/[\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+/)
    .filter((word) => word !== "")
    .map(
      (word) =>
        `'${[...word.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())].slice(0, WORD_MAX_CHARACTERS).join("")}':*`,
    );
  return searchWords.length === 0 ? null : [`'@${appId}'`, ...searchWords].join(" & ");
}

/**
 * Returns the IDs of up to `max` matching runs. Searches ranges of IDs below `upperId`, from new to old. PostgreSQL sorts all matches of a
 * range, so the first range is small.
 */
async function findByWords(
  manager: EntityManager,
  query: string,
  max: number,
  upperId: number,
  partitions: readonly Partition[],
): Promise<number[]> {
  const deadline = performance.now() + RUN_SEARCH_TIMEOUT_MS;
  const foundIds: number[] = [];
  let rangeEnd = upperId;
  for (let rangeWidth = FIRST_ID_RANGE; rangeEnd > 0 && foundIds.length < max; rangeWidth *= ID_RANGE_GROWTH) {
    const remainingMs = Math.max(1, Math.ceil(deadline - performance.now()));
    await manager.query(`${USE_INDEX_OF_WORDS}; SET LOCAL statement_timeout = ${remainingMs}`);
    const rangeStart = Math.max(0, rangeEnd - rangeWidth);
    const rangePartitions = partitions.filter(
      ({ low, high }) => (low ?? 0) < rangeEnd && (high ?? rangeEnd) > rangeStart,
    );
    const [high, low] = [rangePartitions.at(-1)?.high ?? rangeEnd, rangePartitions[0]?.low ?? rangeStart];
    const matchingRows = await rows<{ id: number }>(manager, SEARCH_BY_WORDS, [
      query,
      max - foundIds.length,
      rangeEnd,
      rangeStart,
      high,
      low,
    ]);
    foundIds.push(...matchingRows.map(({ id }) => id));
    rangeEnd = rangeStart;
  }
  return foundIds;
}

export interface RunSearchPosition {
  /** Only runs with lower IDs are returned; null for no limit. */
  before?: number | null;
  /** Maximum number of runs to return. */
  limit: number;
}

export class RunSearch {
  private isStopped = false;
  private readonly batchSize = new AdaptiveBatchSize(RUNS_PER_BATCH);
  /** Resolves when the latest batch of `catchUp` has ended. */
  private previousBatch: Promise<unknown> = Promise.resolve();
  /** Batch of `catchUp` that has not started yet. */
  private nextBatch: Promise<boolean> | null = null;

  constructor(private readonly db: Db) {}

  /** Indexes a batch of runs. `failedRunId` is the run that caused an error or a timeout; null if the batch had several runs. */
  private async storeBatch(side: "newer" | "older"): Promise<{ hasMore: boolean } | { failedRunId: number | null }> {
    const limit = this.batchSize.current;
    let isIndexing = false;
    let singleRunId: number | null = null;
    const store = async (manager: EntityManager) => {
      await manager.query(WITHOUT_PARALLEL_WORKERS);
      const [mark] = await rows<{ newest: string; oldest: string; now: string }>(
        manager,
        "SELECT newest::text, oldest::text, now()::text FROM run_search_mark FOR UPDATE",
      );
      await manager.query(`SET LOCAL statement_timeout = ${BATCH_TIMEOUT_MS}`);
      const due = [side === "newer" ? mark!.newest : mark!.oldest, limit];
      if (limit === 1) singleRunId = (await rows<{ id: number }>(manager, SELECT_DUE_RUNS[side], due))[0]?.id ?? null;
      isIndexing = true;
      const [batchRow] =
        singleRunId === null
          ? await rows<IndexedBatch>(manager, INDEX_RUNS[side], due)
          : await rows<IndexedBatch>(manager, INDEX_RUN, [singleRunId, 1]);
      isIndexing = false;
      const isFull = batchRow!.count === limit;
      if (side === "newer") {
        const sql = "UPDATE run_search_mark SET newest = greatest(newest, $1::timestamptz)";
        await rows(manager, sql, [isFull ? batchRow!.last : mark!.now]);
      } else if (batchRow!.first !== null) {
        await rows(manager, "UPDATE run_search_mark SET oldest = $1::timestamptz", [batchRow!.first]);
      }
      return { hasMore: isFull };
    };
    return this.db.transaction(store).catch((error: unknown) => {
      if (isIndexing && RUN_FAULT_TESTS.some((isFault) => isFault(error))) return { failedRunId: singleRunId };
      throw error;
    });
  }

  /** Indexes one batch; true if more runs may follow. A single run that causes an error is stored without words. */
  private async indexBatch(side: "newer" | "older"): Promise<boolean> {
    const batch = await this.storeBatch(side);
    if ("hasMore" in batch) {
      this.batchSize.grow();
      return batch.hasMore;
    }
    this.batchSize.shrink();
    if (batch.failedRunId !== null) await rows(this.db, SKIP_RUN, [batch.failedRunId]);
    return true;
  }

  /** Indexes a batch of recently ended runs before a search. Concurrent searches share the batch. Returns true if more runs may follow. */
  catchUp(): Promise<boolean> {
    this.nextBatch ??= this.previousBatch.then(() => {
      this.nextBatch = null;
      const newerBatch = this.indexBatch("newer");
      // The code that awaits `catchUp` receives the error.
      this.previousBatch = newerBatch.catch(() => undefined);
      return newerBatch;
    });
    return this.nextBatch;
  }

  /** Indexes all recently ended runs and a batch of older ones. Returns the time of the next call as Unix time in milliseconds. */
  async indexEndedRuns(): Promise<number> {
    while (!this.isStopped && (await this.indexBatch("newer")));
    const hasMore = !this.isStopped && (await this.indexBatch("older"));
    return Date.now() + (hasMore ? 0 : INDEX_INTERVAL_MS);
  }

  /**
   * Returns the IDs of the app's newest runs that contain all searched words. A searched word can be the beginning of a longer word. Words
   * consist of ASCII letters, digits and all characters outside ASCII. Ignores the case of ASCII letters only.
   * @throws ActionError REQUEST_INVALID if the search contains no word, or takes too long
   */
  async find(appId: number, search: string, { before = null, limit: maxRuns }: RunSearchPosition): Promise<number[]> {
    const query = createTextSearchQuery(appId, search);
    if (query === null) throw new ActionError("REQUEST_INVALID", '"search" must contain letters or digits');
    const below = before ?? Number.MAX_SAFE_INTEGER;
    // Planning this statement for all partitions takes longer than its execution, so it is prepared.
    const newestRows = await queryPreparedRows<{ id: number }>(this.db, "newest-runs-by-words", SEARCH_NEWEST_RUNS, [
      query,
      maxRuns,
      below,
    ]);
    if (newestRows.length === maxRuns) return newestRows.map(({ id }) => id);
    const [top] = await queryPreparedRows<{ id: number | null }>(this.db, "newest-run-with-words", SELECT_HIGHEST_ID, [
      below,
    ]);
    const partitions = await listPartitions(this.db, "run_search");
    const findInPartitions = (manager: EntityManager) =>
      findByWords(manager, query, maxRuns, (top!.id ?? 0) + 1, partitions);
    return this.db.transaction(findInPartitions).catch((error: unknown) => {
      throw isStatementTimeout(error)
        ? new ActionError(
            "REQUEST_INVALID",
            `"search" took longer than ${RUN_SEARCH_TIMEOUT_MS / 1000} s; add a rarer word`,
          )
        : error;
    });
  }

  stop(): void {
    this.isStopped = true;
  }
}
