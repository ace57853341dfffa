/** Counts the entries that match a filter: exactly if this is cheap, otherwise by an estimate from a sample. */
import type { VisibleEntryScope } from "../../rules/entry-query/options.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import { type DataSourceKey, entryConditionSql } from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

export interface EntryCount {
  total: number;
  /** True if `total` is an estimate; missing if it is exact. */
  about?: true;
}

interface CountFilter {
  scope: VisibleEntryScope;
  where: unknown;
  ids?: readonly number[] | undefined;
}

/** Maximum cost of an exact count, in units of PostgreSQL's planner. A count of this cost takes about 40 ms of one core. */
const EXACT_COUNT_MAX_COST = 5_000;
/** A sample reads entries at this many positions, which are spread evenly over the values of the column `order`. */
const SAMPLE_POSITIONS = 400;
const ENTRIES_PER_SAMPLE_POSITION = 5;
/** Entries with more bytes are left out of a sample, because decompressing them is too slow for an estimate. */
const SAMPLED_MAX_BYTES = 64 * 1024;
/** The fractional parts of multiples of this number are evenly spread. So a regular pattern in the entries does not distort a sample. */
const GOLDEN_RATIO = "0.6180339887498949";

interface QueryPlan {
  "QUERY PLAN": { Plan: { "Total Cost": number; "Plan Rows": number } }[];
}

export class EntryCounter {
  constructor(private readonly read: ReadRows) {}

  private async explainPlan(appId: number, select: string, values: readonly unknown[]) {
    const [row] = await this.read<QueryPlan>(appId, `EXPLAIN (FORMAT JSON) ${select}`, values);
    const { "Total Cost": cost, "Plan Rows": rows } = row!["QUERY PLAN"][0]!.Plan;
    return { cost, rows };
  }

  private async sampleEntries(key: DataSourceKey, condition: string, statement: SqlStatement) {
    const entriesOfSourceSql = `data_source_entry WHERE app_id = ${statement.bind(key.appId, "bigint")} AND data_source_id = ${statement.bind(key.id, "integer")}`;
    const sql = `
      WITH ends AS (
        SELECT (SELECT "order" FROM ${entriesOfSourceSql} ORDER BY "order" LIMIT 1) AS low,
               (SELECT "order" FROM ${entriesOfSourceSql} ORDER BY "order" DESC LIMIT 1) AS high),
      e AS MATERIALIZED (
        SELECT DISTINCT ON (run.id) run.* FROM ends CROSS JOIN generate_series(0, ${SAMPLE_POSITIONS - 1}) AS position
         CROSS JOIN LATERAL (
           SELECT * FROM ${entriesOfSourceSql} AND "order" >= low + (high - low) * mod(position * ${GOLDEN_RATIO}, 1)::float8
            ORDER BY "order", id LIMIT ${ENTRIES_PER_SAMPLE_POSITION}) run)
      SELECT count(*) AS sampled, count(*) FILTER (WHERE ${condition}) AS matched FROM e WHERE bytes <= ${SAMPLED_MAX_BYTES}`;
    const [row] = await this.read<{ sampled: number; matched: number }>(key.appId, sql, statement.values);
    return row!;
  }

  /** Counts the matching entries. @param buildConditions returns additional SQL conditions, in which `e` is the alias of the entry */
  async count(
    key: DataSourceKey,
    filter: CountFilter,
    buildConditions: (statement: SqlStatement) => Promise<string[]>,
  ): Promise<EntryCount> {
    const statement = new SqlStatement();
    const conditions = [entryConditionSql(key, filter, statement, "e"), ...(await buildConditions(statement))];
    const fromClause = `FROM data_source_entry e WHERE ${conditions.join(" AND ")}`;
    const matchingPlan = await this.explainPlan(key.appId, `SELECT 1 ${fromClause}`, statement.values);
    if (matchingPlan.cost <= EXACT_COUNT_MAX_COST) {
      const [row] = await this.read<{ total: number }>(
        key.appId,
        `SELECT count(*) AS total ${fromClause}`,
        statement.values,
      );
      return row!;
    }
    const all = new SqlStatement();
    const allEntriesSql = `SELECT 1 FROM data_source_entry e WHERE ${entryConditionSql(key, { scope: { canSeeColumn: () => true, filter: null }, where: null }, all, "e")}`;
    const { rows } = await this.explainPlan(key.appId, allEntriesSql, all.values);
    const { sampled, matched } = await this.sampleEntries(key, conditions.join(" AND "), statement);
    // Without a match in the sample, the planner's estimate is more precise.
    const total = matched === 0 ? Math.min(matchingPlan.rows, rows / Math.max(1, sampled)) : (rows * matched) / sampled;
    return { total: Math.round(total), about: true };
  }
}
