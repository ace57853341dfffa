/** Counts matching rows: exactly if there are few, otherwise by the planner's estimate. */
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { COUNT_EXACT_MAX } from "../limits.js";
import { preparedRows, rows, statementName } from "./database.js";

/** Result of a count. Above COUNT_EXACT_MAX, `exact` is false and `count` is the database planner's estimate. */
export interface Count {
  count: number;
  exact: boolean;
}

interface ExplainedPlan {
  "QUERY PLAN": [{ Plan: { "Plan Rows": number } }];
}

/**
 * Time for which estimates are cached. A new estimate takes as long as a count, because PostgreSQL plans for all
 * partitions, and it changes only every few minutes.
 */
const ESTIMATE_KEPT_MS = 10_000;
const ESTIMATES_MAX = 1_000;

const estimatesOf = new WeakMap<DataSource, LRUCache<string, number>>();

async function estimateRows(db: DataSource, from: string, parameters: unknown[]): Promise<number> {
  const stored = estimatesOf.get(db) ?? new LRUCache<string, number>({ max: ESTIMATES_MAX, ttl: ESTIMATE_KEPT_MS });
  estimatesOf.set(db, stored);
  const key = JSON.stringify([from, parameters]);
  const knownEstimate = stored.get(key);
  if (knownEstimate !== undefined) return knownEstimate;
  const [plan] = await rows<ExplainedPlan>(db, `EXPLAIN (FORMAT JSON) SELECT FROM ${from}`, parameters);
  const estimatedRows = Math.round(plan!["QUERY PLAN"][0].Plan["Plan Rows"]);
  stored.set(key, estimatedRows);
  return estimatedRows;
}

/** @param from SQL after FROM, including the conditions */
export async function countUpTo(db: DataSource, from: string, parameters: unknown[]): Promise<Count> {
  const countLimit = COUNT_EXACT_MAX + 1;
  const countSql = `SELECT count(*) FROM (SELECT FROM ${from} LIMIT ${countLimit}) AS counted`;
  const [countRow] = await preparedRows<{ count: number }>(db, statementName(countSql), countSql, parameters);
  if (countRow!.count < countLimit) return { count: countRow!.count, exact: true };
  return { count: Math.max(countLimit, await estimateRows(db, from, parameters)), exact: false };
}
