/** How many entries match: exactly where that is little work, else from a sample of them. Knows no page. */
import type { EntryScope } from "../../rules/entry-query/options.js";
import { Statement } from "../../rules/entry-query/statement.js";
import { type DataSourceKey, entriesOf } from "./entry-rows.js";
import type { Read } from "./read-pool.js";

export interface Counted {
  total: number;
  about?: true;
}

interface Which {
  scope: EntryScope;
  where: unknown;
  ids?: readonly number[] | undefined;
}

/** Of the planner's units: some 40 ms of a core. */
const EXACT_COST_MAX = 5_000;
/** Places in the order at which a sample is taken, and entries looked at from each. */
const SAMPLE_PLACES = 400;
const SAMPLE_RUN = 5;
/** Larger ones would be unpacked for nothing but an estimate. */
const SAMPLED_MAX_BYTES = 64 * 1024;
/** Multiples of it lie evenly and in no step with what repeats itself in the entries. */
const GOLDEN = "0.6180339887498949";

interface Plan {
  "QUERY PLAN": { Plan: { "Total Cost": number; "Plan Rows": number } }[];
}

/** Entries of the data source in all, as the planner has it, and whether counting those that match is cheap. */
export function createEntryCounts(read: Read) {
  async function plan(appId: number, select: string, values: readonly unknown[]) {
    const [row] = await read<Plan>(appId, `EXPLAIN (FORMAT JSON) ${select}`, values);
    const { "Total Cost": cost, "Plan Rows": rows } = row!["QUERY PLAN"][0]!.Plan;
    return { cost, rows };
  }

  /** Entries from places spread over the order: how many were looked at, and how many of them match. */
  async function sample(key: DataSourceKey, condition: string, statement: Statement) {
    const entries = `data_source_entry WHERE app_id = ${statement.bind(key.appId, "bigint")} AND data_source_id = ${statement.bind(key.id, "integer")}`;
    const sql = `
      WITH ends AS (
        SELECT (SELECT "order" FROM ${entries} ORDER BY "order" LIMIT 1) AS low,
               (SELECT "order" FROM ${entries} ORDER BY "order" DESC LIMIT 1) AS high),
      e AS MATERIALIZED (
        SELECT DISTINCT ON (run.id) run.* FROM ends CROSS JOIN generate_series(0, ${SAMPLE_PLACES - 1}) AS place
         CROSS JOIN LATERAL (
           SELECT * FROM ${entries} AND "order" >= low + (high - low) * mod(place * ${GOLDEN}, 1)::float8
            ORDER BY "order", id LIMIT ${SAMPLE_RUN}) run)
      SELECT count(*) AS seen, count(*) FILTER (WHERE ${condition}) AS matching FROM e WHERE bytes <= ${SAMPLED_MAX_BYTES}`;
    const [row] = await read<{ seen: number; matching: number }>(key.appId, sql, statement.values);
    return row!;
  }

  return {
    /** @param further conditions on `e` */
    async count(
      key: DataSourceKey,
      which: Which,
      further: (statement: Statement) => Promise<string[]>,
    ): Promise<Counted> {
      const statement = new Statement();
      const conditions = [entriesOf(key, which, statement, "e"), ...(await further(statement))];
      const from = `FROM data_source_entry e WHERE ${conditions.join(" AND ")}`;
      const matching = await plan(key.appId, `SELECT 1 ${from}`, statement.values);
      if (matching.cost <= EXACT_COST_MAX) {
        const [row] = await read<{ total: number }>(key.appId, `SELECT count(*) AS total ${from}`, statement.values);
        return row!;
      }
      const all = new Statement();
      const whole = `SELECT 1 FROM data_source_entry e WHERE ${entriesOf(key, { scope: { sees: () => true, filter: null }, where: null }, all, "e")}`;
      const { rows } = await plan(key.appId, whole, all.values);
      const { seen, matching: matched } = await sample(key, conditions.join(" AND "), statement);
      // A sample without one says less than the planner's own guess.
      const total = matched === 0 ? Math.min(matching.rows, rows / Math.max(1, seen)) : (rows * matched) / seen;
      return { total: Math.round(total), about: true };
    },
  };
}
