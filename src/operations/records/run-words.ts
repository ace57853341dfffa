/**
 * Runs by the words in what they took, returned, threw, printed and the hosts that they contacted: as their log says it, where secrets
 * are masked. Gathered after the runs have ended, a batch at a time, so that no run waits for it. Knows no caller.
 */
import type { DataSource, EntityManager } from "typeorm";
import { isTimeout, preparedRows, rows } from "../../data/database.js";
import { type Partition, partitionsOf } from "../../data/partitions.js";
import { ActionError } from "../../errors.js";
import { SEARCH_CHARACTERS, SEARCH_LIMIT_MS } from "../../limits.js";

const BATCH = 500;
const GATHER_EVERY_MS = 2_000;
/** A run may end in a transaction that others overtake: so far back is looked once more. */
const OVERTAKEN = "interval '60 seconds'";
const WORD_CHARACTERS = 64;
/** Runs whose words are read before the index of words is asked. */
const NEWEST = 2_000;
/** How far back the index of words is asked first, in ids; each time after, so many times as far. */
const FIRST_WINDOW = 200_000;
const WINDOW_GROWTH = 4;
/** Lines of the console, the first. */
const LINES = 500;

const WORDS = `
  svc_search_words(run.app_id, concat_ws(' ',
    left(svc_entry_data(entry.data, entry.payload_at, run.id), ${SEARCH_CHARACTERS}),
    left((SELECT string_agg(text, ' ' ORDER BY seq) FROM console_line
           WHERE run_id = run.id AND seq < ${LINES}), ${SEARCH_CHARACTERS}),
    run.reason, array_to_string(run.hosts, ' ')))`;

const ENTRY = `
  LEFT JOIN execution_log AS entry
    ON entry.id = coalesce(run.log_id, (SELECT id FROM execution_log AS old WHERE old.run_id = run.id LIMIT 1))`;

const gather = (which: string, order: "ASC" | "DESC") => `
  WITH due AS (
    SELECT id, app_id, hosts, reason, log_id, finished_at FROM run
     WHERE ${which} AND NOT EXISTS (SELECT FROM run_search WHERE run_search.run_id = run.id)
     ORDER BY finished_at ${order} LIMIT ${BATCH}),
  written AS (
    INSERT INTO run_search (run_id, words)
    SELECT run.id, ${WORDS} FROM due AS run ${ENTRY} ON CONFLICT DO NOTHING)
  SELECT count(*) AS count, min(finished_at)::text AS first, max(finished_at)::text AS last FROM due`;

/* $1 how far it was. Text, since a moment of PostgreSQL is finer than one of JavaScript. */
const NEWER = gather(`finished_at > $1::timestamptz - ${OVERTAKEN}`, "ASC");
const OLDER = gather("finished_at < $1::timestamptz", "DESC");

/*
 * $1 words, $2 how many, $3 before which. The planner knows of no word how many runs hold it. A common one is found among the newest runs;
 * what is not common there, the index of words finds without reading many. It is asked with the bounds of whole partitions, which $5 and $6
 * are: for a part of one the planner would read all rows of that part by their ids.
 */
const AMONG_NEWEST = `
  SELECT run_id AS id FROM (SELECT run_id, words FROM run_search WHERE run_id < $3 ORDER BY run_id DESC LIMIT ${NEWEST}) AS newest
   WHERE words @@ $1::tsquery ORDER BY run_id DESC LIMIT $2`;
const BY_WORDS = `
  SELECT run_id AS id FROM run_search
   WHERE words @@ $1::tsquery AND run_id + 0 < $3 AND run_id + 0 >= $4 AND run_id < $5 AND run_id >= $6 ORDER BY run_id DESC LIMIT $2`;
/** Workers of a parallel plan take longer to start than what they would share. */
const ALONE = "SET LOCAL max_parallel_workers_per_gather = 0";
const BY_INDEX_OF_WORDS = `SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = off; ${ALONE}`;
const TOP = "SELECT max(run_id) AS id FROM run_search WHERE run_id < $1";

interface Gathered {
  count: number;
  first: string | null;
  last: string | null;
}

/** The query of words that begin so, each of them; null where no word is in it. */
function queryOf(appId: number, search: string): string | null {
  const words = search
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they separate words, as in svc_search_words
    .split(/[\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+/)
    .filter((word) => word !== "")
    .map(
      (word) =>
        `'${[...word.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())].slice(0, WORD_CHARACTERS).join("")}':*`,
    );
  return words.length === 0 ? null : [`'@${appId}'`, ...words].join(" & ");
}

/**
 * Asks the index of words, newest runs first: all that hold a word are read before any is sorted, so no further back than must be.
 * @param below the first id that is too high
 */
async function findByWords(
  manager: EntityManager,
  query: string,
  most: number,
  below: number,
  partitions: readonly Partition[],
): Promise<number[]> {
  const until = performance.now() + SEARCH_LIMIT_MS;
  const found: number[] = [];
  let rest = below;
  for (let width = FIRST_WINDOW; rest > 0 && found.length < most; width *= WINDOW_GROWTH) {
    const left = Math.max(1, Math.ceil(until - performance.now()));
    await manager.query(`${BY_INDEX_OF_WORDS}; SET LOCAL statement_timeout = ${left}`);
    const from = Math.max(0, rest - width);
    const within = partitions.filter(({ low, high }) => (low ?? 0) < rest && (high ?? rest) > from);
    const [high, low] = [within.at(-1)?.high ?? rest, within[0]?.low ?? from];
    const more = await rows<{ id: number }>(manager, BY_WORDS, [query, most - found.length, rest, from, high, low]);
    found.push(...more.map(({ id }) => id));
    rest = from;
  }
  return found;
}

/** Where a search goes on, and how much it is to find. */
export interface SearchPlace {
  /** Only runs of smaller ids. */
  before?: number | null;
  most: number;
}

export type RunWords = ReturnType<typeof createRunWords>;

export function createRunWords(db: DataSource) {
  let stopped = false;
  let catching: Promise<unknown> = Promise.resolve();
  let next: Promise<boolean> | null = null;

  /** One batch, by one process at a time. @returns whether there may be more */
  async function gatherBatch(side: "newer" | "older"): Promise<boolean> {
    return db.transaction(async (manager) => {
      await manager.query(ALONE);
      const [mark] = await rows<{ newest: string; oldest: string; now: string }>(
        manager,
        "SELECT newest::text, oldest::text, now()::text FROM run_search_mark FOR UPDATE",
      );
      const from = side === "newer" ? mark!.newest : mark!.oldest;
      const [found] = await rows<Gathered>(manager, side === "newer" ? NEWER : OLDER, [from]);
      const full = found!.count === BATCH;
      if (side === "newer") {
        const sql = "UPDATE run_search_mark SET newest = greatest(newest, $1::timestamptz)";
        await rows(manager, sql, [full ? found!.last : mark!.now]);
      } else if (found!.first !== null) {
        await rows(manager, "UPDATE run_search_mark SET oldest = $1::timestamptz", [found!.first]);
      }
      return full;
    });
  }

  return {
    /**
     * Gathers what has ended since, as far as one batch goes: what a search asked now is to find. Those who ask while one batch is
     * gathered share the one after it, so that searches take one connection for it, however many there are.
     */
    catchUp(): Promise<boolean> {
      next ??= catching.then(() => {
        next = null;
        const gathered = gatherBatch("newer");
        // The caller receives the failure from `gathered`.
        catching = gathered.catch(() => undefined);
        return gathered;
      });
      return next;
    },

    /** Gathers all that ended since, and one batch of what was there before. Answers with the Unix time in milliseconds to come again. */
    async gather(): Promise<number> {
      while (!stopped && (await gatherBatch("newer")));
      const more = !stopped && (await gatherBatch("older"));
      return Date.now() + (more ? 0 : GATHER_EVERY_MS);
    },

    /**
     * The newest runs of the app in which each word of the search begins a word, newest first: `most` at most. Letters and digits make
     * words, all else parts them; small and capital letters of ASCII are the same.
     * @throws REQUEST_INVALID where no word is in it, or so many runs hold them that it takes too long
     */
    async find(appId: number, asked: string, { before = null, most }: SearchPlace): Promise<number[]> {
      const query = queryOf(appId, asked);
      if (query === null) throw new ActionError("REQUEST_INVALID", "search must hold letters or digits");
      const below = before ?? Number.MAX_SAFE_INTEGER;
      // Planned once: to plan for all partitions takes longer than to read these.
      const newest = await preparedRows<{ id: number }>(db, "newest-runs-by-words", AMONG_NEWEST, [query, most, below]);
      if (newest.length === most) return newest.map(({ id }) => id);
      const [top] = await preparedRows<{ id: number | null }>(db, "newest-run-with-words", TOP, [below]);
      const partitions = await partitionsOf(db, "run_search");
      const search = (manager: EntityManager) => findByWords(manager, query, most, (top!.id ?? 0) + 1, partitions);
      return db.transaction(search).catch((error: unknown) => {
        throw isTimeout(error)
          ? new ActionError("REQUEST_INVALID", `search took longer than ${SEARCH_LIMIT_MS / 1000} s: name a rarer word`)
          : error;
      });
    },

    stop(): void {
      stopped = true;
    },
  };
}
