/**
 * Searches runs by words in their payload, result, error, console lines and contacted hosts. Secrets are masked in
 * these texts, as in the execution log. Words are indexed in batches after the runs have ended, so that no run waits
 * for the index.
 */
import type { DataSource, EntityManager } from "typeorm";
import { isStatementTimeout, preparedRows, rows } from "../../data/database.js";
import { type Partition, partitionsOf } from "../../data/partitions.js";
import { ActionError } from "../../errors.js";
import { SEARCH_CHARACTERS, SEARCH_LIMIT_MS } from "../../limits.js";

/** Maximum number of runs that one statement indexes. */
const RUNS_PER_BATCH = 500;
/** Interval at which ended runs are indexed. */
const GATHER_EVERY_MS = 2_000;
/**
 * Each batch starts this long before the end of the last batch. A run that ended then may have been committed after
 * runs that ended later.
 */
const OVERTAKEN_INTERVAL = "interval '60 seconds'";
/** Maximum length of a word in the index. */
const WORD_CHARACTERS = 64;
/** Number of newest runs whose words a search reads directly, before it uses the index. */
const NEWEST_RUNS = 2_000;
/** Number of run IDs in the first range that a search by index covers. The range starts at the newest run. */
const FIRST_WINDOW = 200_000;
/** Factor by which each further range is larger than the previous one. */
const WINDOW_GROWTH = 4;
/** Maximum number of console lines of a run that are indexed. Later lines are not searched. */
const CONSOLE_LINES_MAX = 500;

const RUN_WORDS = `
  svc_search_words(run.app_id, concat_ws(' ',
    left(svc_entry_data(entry.data, entry.payload_at, run.id), ${SEARCH_CHARACTERS}),
    left((SELECT string_agg(text, ' ' ORDER BY seq) FROM console_line
           WHERE run_id = run.id AND seq < ${CONSOLE_LINES_MAX}), ${SEARCH_CHARACTERS}),
    run.reason, array_to_string(run.hosts, ' ')))`;

const JOIN_LOG_ENTRY = `
  LEFT JOIN execution_log AS entry
    ON entry.id = coalesce(run.log_id, (SELECT id FROM execution_log AS old WHERE old.run_id = run.id LIMIT 1))`;

const gatherStatement = (condition: string, order: "ASC" | "DESC") => `
  WITH due AS (
    SELECT id, app_id, hosts, reason, log_id, finished_at FROM run
     WHERE ${condition} AND NOT EXISTS (SELECT FROM run_search WHERE run_search.run_id = run.id)
     ORDER BY finished_at ${order} LIMIT ${RUNS_PER_BATCH}),
  written AS (
    INSERT INTO run_search (run_id, words)
    SELECT run.id, ${RUN_WORDS} FROM due AS run ${JOIN_LOG_ENTRY} ON CONFLICT DO NOTHING)
  SELECT count(*) AS count, min(finished_at)::text AS first, max(finished_at)::text AS last FROM due`;

/*
 * Indexes runs that ended after the last batch. $1 is the end of the last batch. It is a text, because PostgreSQL's
 * times are more precise than JavaScript's.
 */
const GATHER_NEWER = gatherStatement(`finished_at > $1::timestamptz - ${OVERTAKEN_INTERVAL}`, "ASC");
const GATHER_OLDER = gatherStatement("finished_at < $1::timestamptz", "DESC");

/**
 * Searches the newest runs. $1 contains the words, $2 is the limit, and runs have IDs below $3. A common word is found
 * quickly among the newest runs. A rare word is then found with BY_WORDS, which uses the index. Two statements are
 * needed, because PostgreSQL's planner does not know how common a word is.
 */
const AMONG_NEWEST = `
  SELECT run_id AS id FROM (SELECT run_id, words FROM run_search WHERE run_id < $3 ORDER BY run_id DESC LIMIT ${NEWEST_RUNS}) AS newest
   WHERE words @@ $1::tsquery ORDER BY run_id DESC LIMIT $2`;
/**
 * Searches by index for runs with IDs from $4 to below $3. $5 and $6 select whole partitions: for a part of a
 * partition, the planner would read all its rows by ID instead of using the index of words.
 */
const BY_WORDS = `
  SELECT run_id AS id FROM run_search
   WHERE words @@ $1::tsquery AND run_id + 0 < $3 AND run_id + 0 >= $4 AND run_id < $5 AND run_id >= $6 ORDER BY run_id DESC LIMIT $2`;
/** Disables parallel workers in a transaction, because starting them takes longer than the search. */
const WITHOUT_PARALLEL_WORKERS = "SET LOCAL max_parallel_workers_per_gather = 0";
const BY_INDEX_OF_WORDS = `SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = off; ${WITHOUT_PARALLEL_WORKERS}`;
const SELECT_HIGHEST_ID = "SELECT max(run_id) AS id FROM run_search WHERE run_id < $1";

interface GatheredBatch {
  count: number;
  first: string | null;
  last: string | null;
}

/**
 * Returns the text search query for an app's runs: for each searched word, the run must contain a word that starts with
 * it. Returns null if the search contains no word.
 */
function queryOf(appId: number, search: string): string | null {
  const searchWords = search
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they separate words, as in svc_search_words
    .split(/[\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+/)
    .filter((word) => word !== "")
    .map(
      (word) =>
        `'${[...word.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())].slice(0, WORD_CHARACTERS).join("")}':*`,
    );
  return searchWords.length === 0 ? null : [`'@${appId}'`, ...searchWords].join(" & ");
}

/**
 * Searches the index of words, in ranges of IDs from new to old. PostgreSQL reads and sorts all matching runs of a
 * range, so the first range is small.
 * @param upperId runs have IDs below this one
 */
async function findByWords(
  manager: EntityManager,
  query: string,
  max: number,
  upperId: number,
  partitions: readonly Partition[],
): Promise<number[]> {
  const deadline = performance.now() + SEARCH_LIMIT_MS;
  const foundIds: number[] = [];
  let remainingBelow = upperId;
  for (let windowWidth = FIRST_WINDOW; remainingBelow > 0 && foundIds.length < max; windowWidth *= WINDOW_GROWTH) {
    const remainingMs = Math.max(1, Math.ceil(deadline - performance.now()));
    await manager.query(`${BY_INDEX_OF_WORDS}; SET LOCAL statement_timeout = ${remainingMs}`);
    const windowStart = Math.max(0, remainingBelow - windowWidth);
    const windowPartitions = partitions.filter(
      ({ low, high }) => (low ?? 0) < remainingBelow && (high ?? remainingBelow) > windowStart,
    );
    const [high, low] = [windowPartitions.at(-1)?.high ?? remainingBelow, windowPartitions[0]?.low ?? windowStart];
    const moreRows = await rows<{ id: number }>(manager, BY_WORDS, [
      query,
      max - foundIds.length,
      remainingBelow,
      windowStart,
      high,
      low,
    ]);
    foundIds.push(...moreRows.map(({ id }) => id));
    remainingBelow = windowStart;
  }
  return foundIds;
}

/** Start and limit of a search. */
export interface SearchPosition {
  /** Only runs with IDs below this one are returned; null for no bound. */
  before?: number | null;
  /** Maximum number of runs to return. */
  limit: number;
}

export type RunSearch = ReturnType<typeof createRunWords>;

export function createRunWords(db: DataSource) {
  let isStopped = false;
  let gatheringOlder: Promise<unknown> = Promise.resolve();
  let next: Promise<boolean> | null = null;

  /**
   * Indexes one batch of runs: those that ended after the indexed runs, or those that ended before. Only one process at
   * a time does this. @returns true if more runs may follow
   */
  async function gatherBatch(side: "newer" | "older"): Promise<boolean> {
    return db.transaction(async (manager) => {
      await manager.query(WITHOUT_PARALLEL_WORKERS);
      const [mark] = await rows<{ newest: string; oldest: string; now: string }>(
        manager,
        "SELECT newest::text, oldest::text, now()::text FROM run_search_mark FOR UPDATE",
      );
      const markedTime = side === "newer" ? mark!.newest : mark!.oldest;
      const [batchRow] = await rows<GatheredBatch>(manager, side === "newer" ? GATHER_NEWER : GATHER_OLDER, [
        markedTime,
      ]);
      const isFull = batchRow!.count === RUNS_PER_BATCH;
      if (side === "newer") {
        const sql = "UPDATE run_search_mark SET newest = greatest(newest, $1::timestamptz)";
        await rows(manager, sql, [isFull ? batchRow!.last : mark!.now]);
      } else if (batchRow!.first !== null) {
        await rows(manager, "UPDATE run_search_mark SET oldest = $1::timestamptz", [batchRow!.first]);
      }
      return isFull;
    });
  }

  return {
    /**
     * Indexes runs that have ended recently, so that a search finds them. Concurrent searches wait for the same batch.
     * Returns true if more runs may follow.
     */
    catchUp(): Promise<boolean> {
      next ??= gatheringOlder.then(() => {
        next = null;
        const newerBatch = gatherBatch("newer");
        // The callers of `catchUp` receive the error, so the next batch ignores it.
        gatheringOlder = newerBatch.catch(() => undefined);
        return newerBatch;
      });
      return next;
    },

    /**
     * Indexes all recently ended runs, and one batch of older runs. Returns the time of the next call, in Unix
     * milliseconds.
     */
    async gather(): Promise<number> {
      while (!isStopped && (await gatherBatch("newer")));
      const hasMore = !isStopped && (await gatherBatch("older"));
      return Date.now() + (hasMore ? 0 : GATHER_EVERY_MS);
    },

    /**
     * Returns the IDs of the app's newest runs that match a search. For each searched word, a matching run contains a
     * word that starts with it. Words consist of letters and digits; the case of ASCII letters is ignored.
     * @throws ActionError REQUEST_INVALID if the search contains no word, or takes too long
     */
    async find(appId: number, requested: string, { before = null, limit: most }: SearchPosition): Promise<number[]> {
      const query = queryOf(appId, requested);
      if (query === null) throw new ActionError("REQUEST_INVALID", '"search" must contain letters or digits');
      const below = before ?? Number.MAX_SAFE_INTEGER;
      // The statement is prepared, because planning it for all partitions takes longer than reading the rows.
      const newestRows = await preparedRows<{ id: number }>(db, "newest-runs-by-words", AMONG_NEWEST, [
        query,
        most,
        below,
      ]);
      if (newestRows.length === most) return newestRows.map(({ id }) => id);
      const [top] = await preparedRows<{ id: number | null }>(db, "newest-run-with-words", SELECT_HIGHEST_ID, [below]);
      const partitions = await partitionsOf(db, "run_search");
      const search = (manager: EntityManager) => findByWords(manager, query, most, (top!.id ?? 0) + 1, partitions);
      return db.transaction(search).catch((error: unknown) => {
        throw isStatementTimeout(error)
          ? new ActionError(
              "REQUEST_INVALID",
              `"search" took longer than ${SEARCH_LIMIT_MS / 1000} s; add a rarer word`,
            )
          : error;
      });
    },

    stop(): void {
      isStopped = true;
    },
  };
}
