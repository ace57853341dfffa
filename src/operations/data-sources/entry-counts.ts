/** Counts matching entries: exactly if the count is cheap, otherwise as an estimate from a sample. */
import type { EntryScope } from "../../rules/entry-query/options.js";
import { Statement } from "../../rules/entry-query/statement.js";
import { type DataSourceKey, entriesOf } from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

export interface CountedEntries {
  total: number;
  /** True if `total` is an estimate. */
  about?: true;
}

interface CountFilter {
  scope: EntryScope;
  where: unknown;
  ids?: readonly number[] | undefined;
}

/** Maximum cost of an exact count in units of PostgreSQL's planner: some 40 ms of one core. */
const EXACT_COST_MAX = 5_000;
/** Number of positions, spread over all entries, at which a sample reads entries. */
const SAMPLE_POSITIONS = 400;
/** Number of consecutive entries that a sample reads at each position. */
const SAMPLE_RUN = 5;
/**
 * Maximum size of an entry in a sample. Larger entries are left out, because decompressing them costs too much for an
 * estimate.
 */
const SAMPLED_MAX_BYTES = 64 * 1024;
/**
 * The fractional parts of its multiples spread evenly between 0 and 1. So the positions of a sample do not follow a
 * pattern in the entries.
 */
const GOLDEN_RATIO = "0.6180339887498949";

interface QueryPlan {
  "QUERY PLAN": { Plan: { "Total Cost": number; "Plan Rows": number } }[];
}

/** Creates the function that counts matching entries. */
export function createEntryCounts(read: ReadRows) {
  /** Returns the planner's estimate for a query: its cost, and its number of rows. */
  async function explainPlan(appId: number, select: string, values: readonly unknown[]) {
    const [row] = await read<QueryPlan>(appId, `EXPLAIN (FORMAT JSON) ${select}`, values);
    const { "Total Cost": cost, "Plan Rows": rows } = row!["QUERY PLAN"][0]!.Plan;
    return { cost, rows };
  }

  /** Reads a sample of entries. Returns how many entries it read, and how many of them match. */
  async function sampleEntries(key: DataSourceKey, condition: string, statement: Statement) {
    const entries = `data_source_entry WHERE app_id = ${statement.bind(key.appId, "bigint")} AND data_source_id = ${statement.bind(key.id, "integer")}`;
    const sql = `
      WITH ends AS (
        SELECT (SELECT "order" FROM ${entries} ORDER BY "order" LIMIT 1) AS low,
               (SELECT "order" FROM ${entries} ORDER BY "order" DESC LIMIT 1) AS high),
      e AS MATERIALIZED (
        SELECT DISTINCT ON (run.id) run.* FROM ends CROSS JOIN generate_series(0, ${SAMPLE_POSITIONS - 1}) AS place
         CROSS JOIN LATERAL (
           SELECT * FROM ${entries} AND "order" >= low + (high - low) * mod(place * ${GOLDEN_RATIO}, 1)::float8
            ORDER BY "order", id LIMIT ${SAMPLE_RUN}) run)
      SELECT count(*) AS seen, count(*) FILTER (WHERE ${condition}) AS matching FROM e WHERE bytes <= ${SAMPLED_MAX_BYTES}`;
    const [row] = await read<{ seen: number; matching: number }>(key.appId, sql, statement.values);
    return row!;
  }

  return {
    /**
     * Counts the entries that match a filter. @param further returns more SQL conditions on the entry, whose alias is
     * `e`
     */
    async count(
      key: DataSourceKey,
      filter: CountFilter,
      further: (statement: Statement) => Promise<string[]>,
    ): Promise<CountedEntries> {
      const statement = new Statement();
      const conditions = [entriesOf(key, filter, statement, "e"), ...(await further(statement))];
      const fromClause = `FROM data_source_entry e WHERE ${conditions.join(" AND ")}`;
      const matchingPlan = await explainPlan(key.appId, `SELECT 1 ${fromClause}`, statement.values);
      if (matchingPlan.cost <= EXACT_COST_MAX) {
        const [row] = await read<{ total: number }>(
          key.appId,
          `SELECT count(*) AS total ${fromClause}`,
          statement.values,
        );
        return row!;
      }
      const all = new Statement();
      const wholeQuery = `SELECT 1 FROM data_source_entry e WHERE ${entriesOf(key, { scope: { canSee: () => true, filter: null }, where: null }, all, "e")}`;
      const { rows } = await explainPlan(key.appId, wholeQuery, all.values);
      const { seen: sampled, matching: matched } = await sampleEntries(key, conditions.join(" AND "), statement);
      // A sample without a match is less precise than the planner's estimate.
      const total =
        matched === 0 ? Math.min(matchingPlan.rows, rows / Math.max(1, sampled)) : (rows * matched) / sampled;
      return { total: Math.round(total), about: true };
    },
  };
}
