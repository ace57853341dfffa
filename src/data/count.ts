/** Number of matching rows: exact for few rows, otherwise the planner's estimate. */
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { COUNT_EXACT_MAX } from "../limits.js";
import { preparedRows, rows, statementName } from "./database.js";

/** `exact` is false above COUNT_EXACT_MAX: the number is then from the database's statistics. */
export interface Count {
  count: number;
  exact: boolean;
}

interface Explained {
  "QUERY PLAN": [{ Plan: { "Plan Rows": number } }];
}

/** Estimates are cached: statistics change only every few minutes, and planning for all partitions takes as long as counting. */
const ESTIMATE_KEPT_MS = 10_000;
const ESTIMATES = 1_000;

const estimatesOf = new WeakMap<DataSource, LRUCache<string, number>>();

async function estimate(db: DataSource, from: string, parameters: unknown[]): Promise<number> {
  const stored = estimatesOf.get(db) ?? new LRUCache<string, number>({ max: ESTIMATES, ttl: ESTIMATE_KEPT_MS });
  estimatesOf.set(db, stored);
  const key = JSON.stringify([from, parameters]);
  const known = stored.get(key);
  if (known !== undefined) return known;
  const [plan] = await rows<Explained>(db, `EXPLAIN (FORMAT JSON) SELECT FROM ${from}`, parameters);
  const found = Math.round(plan!["QUERY PLAN"][0].Plan["Plan Rows"]);
  stored.set(key, found);
  return found;
}

/** @param from text after FROM, including the conditions */
export async function countUpTo(db: DataSource, from: string, parameters: unknown[]): Promise<Count> {
  const bound = COUNT_EXACT_MAX + 1;
  const counted = `SELECT count(*) FROM (SELECT FROM ${from} LIMIT ${bound}) AS counted`;
  const [found] = await preparedRows<{ count: number }>(db, statementName(counted), counted, parameters);
  if (found!.count < bound) return { count: found!.count, exact: true };
  return { count: Math.max(bound, await estimate(db, from, parameters)), exact: false };
}
