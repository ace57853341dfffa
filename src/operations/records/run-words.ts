/**
 * Searches runs by words in their payload, result, error, console lines and contacted hosts; secrets are masked as in
 * the log. Words are indexed in batches after runs have ended, so that no run waits for the index.
 */
import type { DataSource, EntityManager } from "typeorm";
import { isTimeout, preparedRows, rows } from "../../data/database.js";
import { type Partition, partitionsOf } from "../../data/partitions.js";
import { ActionError } from "../../errors.js";
import { SEARCH_CHARACTERS, SEARCH_LIMIT_MS } from "../../limits.js";

const BATCH = 500;
const GATHER_EVERY_MS = 2_000;
/** Interval that each batch reads again, because a run may commit after runs that ended later. */
const OVERTAKEN_INTERVAL = "interval '60 seconds'";
const WORD_CHARACTERS = 64;
/** Number of newest runs that a search reads without the index of words. */
const NEWEST_RUNS = 2_000;
/** Range of IDs with which the index search starts, and the factor by which it grows. */
const FIRST_WINDOW = 200_000;
const WINDOW_GROWTH = 4;
/** Maximum number of a run's console lines that are indexed; the first ones. */
const LINES = 500;

const INSERT_RUN_WORDS = `
  svc_search_words(run.app_id, concat_ws(' ',
    left(svc_entry_data(entry.data, entry.payload_at, run.id), ${SEARCH_CHARACTERS}),
    left((SELECT string_agg(text, ' ' ORDER BY seq) FROM console_line
           WHERE run_id = run.id AND seq < ${LINES}), ${SEARCH_CHARACTERS}),
    run.reason, array_to_string(run.hosts, ' ')))`;

const ENTRY = `
  LEFT JOIN execution_log AS entry
    ON entry.id = coalesce(run.log_id, (SELECT id FROM execution_log AS old WHERE old.run_id = run.id LIMIT 1))`;

const gatherStatement = (condition: string, order: "ASC" | "DESC") => `
  WITH due AS (
    SELECT id, app_id, hosts, reason, log_id, finished_at FROM run
     WHERE ${condition} AND NOT EXISTS (SELECT FROM run_search WHERE run_search.run_id = run.id)
     ORDER BY finished_at ${order} LIMIT ${BATCH}),
  written AS (
    INSERT INTO run_search (run_id, words)
    SELECT run.id, ${INSERT_RUN_WORDS} FROM due AS run ${ENTRY} ON CONFLICT DO NOTHING)
  SELECT count(*) AS count, min(finished_at)::text AS first, max(finished_at)::text AS last FROM due`;

/* Indexes newer runs. $1 is the end of the last batch, as text, because PostgreSQL's times are more precise than JavaScript's. */
const GATHER_NEWER = gatherStatement(`finished_at > $1::timestamptz - ${OVERTAKEN_INTERVAL}`, "ASC");
const GATHER_OLDER = gatherStatement("finished_at < $1::timestamptz", "DESC");

/**
 * Searches the newest runs. $1 are the words, $2 is the limit, $3 the ID before which the search starts. The planner does not know how many
 * runs contain a word: a common word is found among the newest runs, a rare one by the index without reading many. The index is searched in
 * whole partitions, limited by $5 and $6, because for a part of one the planner would read all of its rows by ID.
 */
const AMONG_NEWEST = `
  SELECT run_id AS id FROM (SELECT run_id, words FROM run_search WHERE run_id < $3 ORDER BY run_id DESC LIMIT ${NEWEST_RUNS}) AS newest
   WHERE words @@ $1::tsquery ORDER BY run_id DESC LIMIT $2`;
const BY_WORDS = `
  SELECT run_id AS id FROM run_search
   WHERE words @@ $1::tsquery AND run_id + 0 < $3 AND run_id + 0 >= $4 AND run_id < $5 AND run_id >= $6 ORDER BY run_id DESC LIMIT $2`;
/** Switches parallel workers off for a transaction, because their start takes longer than the search. */
const WITHOUT_PARALLEL_WORKERS = "SET LOCAL max_parallel_workers_per_gather = 0";
const BY_INDEX_OF_WORDS = `SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = off; ${WITHOUT_PARALLEL_WORKERS}`;
const TOP = "SELECT max(run_id) AS id FROM run_search WHERE run_id < $1";

interface GatheredBatch {
  count: number;
  first: string | null;
  last: string | null;
}

/** Returns the query for runs that contain a word with each of these prefixes; null if the search contains no word. */
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
 * Searches the index of words, the newest runs first. All matching runs of a range are read before they are sorted, so the range is no
 * larger than necessary.
 * @param upperId first ID that is too high
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

/** Position of a search, and its limit. */
export interface SearchPosition {
  /** ID below which runs are returned. */
  before?: number | null;
  most: number;
}

export type RunSearch = ReturnType<typeof createRunWords>;

export function createRunWords(db: DataSource) {
  let isStopped = false;
  let gatheringOlder: Promise<unknown> = Promise.resolve();
  let next: Promise<boolean> | null = null;

  /** Indexes one batch, by one process at a time. @returns true if there may be more */
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
      const isFull = batchRow!.count === BATCH;
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
    /** Indexes runs that have ended recently, so that a search finds them. Concurrent searches share one batch and one connection. */
    catchUp(): Promise<boolean> {
      next ??= gatheringOlder.then(() => {
        next = null;
        const newerBatch = gatherBatch("newer");
        // The caller of `gathered` handles the failure.
        gatheringOlder = newerBatch.catch(() => undefined);
        return newerBatch;
      });
      return next;
    },

    /** Indexes all recently ended runs, and one batch of older ones. Returns the Unix time in milliseconds of the next call. */
    async gather(): Promise<number> {
      while (!isStopped && (await gatherBatch("newer")));
      const hasMore = !isStopped && (await gatherBatch("older"));
      return Date.now() + (hasMore ? 0 : GATHER_EVERY_MS);
    },

    /**
     * Returns the newest runs of the app that contain, for each word of the search, a word with that prefix; at most `most` runs. Words
     * consist of letters and digits; the case of ASCII letters is ignored.
     * @throws ActionError REQUEST_INVALID if the search contains no word, or if so many runs match that it takes too long
     */
    async find(appId: number, requested: string, { before = null, most }: SearchPosition): Promise<number[]> {
      const query = queryOf(appId, requested);
      if (query === null) throw new ActionError("REQUEST_INVALID", "search must contain letters or digits");
      const below = before ?? Number.MAX_SAFE_INTEGER;
      // The statement is prepared, because planning for all partitions takes longer than reading these rows.
      const newestRows = await preparedRows<{ id: number }>(db, "newest-runs-by-words", AMONG_NEWEST, [
        query,
        most,
        below,
      ]);
      if (newestRows.length === most) return newestRows.map(({ id }) => id);
      const [top] = await preparedRows<{ id: number | null }>(db, "newest-run-with-words", TOP, [below]);
      const partitions = await partitionsOf(db, "run_search");
      const search = (manager: EntityManager) => findByWords(manager, query, most, (top!.id ?? 0) + 1, partitions);
      return db.transaction(search).catch((error: unknown) => {
        throw isTimeout(error)
          ? new ActionError(
              "REQUEST_INVALID",
              `search took longer than ${SEARCH_LIMIT_MS / 1000} s: search for a rarer word`,
            )
          : error;
      });
    },

    stop(): void {
      isStopped = true;
    },
  };
}
