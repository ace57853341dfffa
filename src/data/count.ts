/** Counts the rows of a query: exactly up to EXACT_COUNT_MAX_ROWS, otherwise with the estimate of PostgreSQL's query planner. */
import { LRUCache } from "lru-cache";
import { EXACT_COUNT_MAX_ROWS } from "../limits.js";
import { createPreparedStatementName, type Db, queryPreparedRows, rows } from "./database.js";

/** Above EXACT_COUNT_MAX_ROWS, `exact` is false and `count` is an estimate. */
export interface Count {
  count: number;
  exact: boolean;
}

interface ExplainedPlan {
  "QUERY PLAN": [{ Plan: { "Plan Rows": number } }];
}

/** Milliseconds for which an estimate is reused, because for a new estimate PostgreSQL plans the query for all partitions. */
const ESTIMATE_CACHE_MS = 10_000;
const CACHED_ESTIMATES_MAX = 1_000;

const estimatesByDatabase = new WeakMap<Db, LRUCache<string, number>>();

async function estimateRows(db: Db, fromClause: string, parameters: unknown[]): Promise<number> {
  const estimates =
    estimatesByDatabase.get(db) ?? new LRUCache<string, number>({ max: CACHED_ESTIMATES_MAX, ttl: ESTIMATE_CACHE_MS });
  estimatesByDatabase.set(db, estimates);
  const key = JSON.stringify([fromClause, parameters]);
  const cachedEstimate = estimates.get(key);
  if (cachedEstimate !== undefined) return cachedEstimate;
  const [plan] = await rows<ExplainedPlan>(db, `EXPLAIN (FORMAT JSON) SELECT FROM ${fromClause}`, parameters);
  const estimatedRows = Math.round(plan!["QUERY PLAN"][0].Plan["Plan Rows"]);
  estimates.set(key, estimatedRows);
  return estimatedRows;
}

/** Counts the rows, or estimates their number above EXACT_COUNT_MAX_ROWS. `fromClause` is the SQL after FROM, with the conditions. */
export async function countRows(db: Db, fromClause: string, parameters: unknown[]): Promise<Count> {
  const countLimit = EXACT_COUNT_MAX_ROWS + 1;
  const countSql = `SELECT count(*) FROM (SELECT FROM ${fromClause} LIMIT ${countLimit}) AS counted`;
  const [countRow] = await queryPreparedRows<{ count: number }>(
    db,
    createPreparedStatementName(countSql),
    countSql,
    parameters,
  );
  if (countRow!.count < countLimit) return { count: countRow!.count, exact: true };
  return { count: Math.max(countLimit, await estimateRows(db, fromClause, parameters)), exact: false };
}
