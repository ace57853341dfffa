/** How many rows match: counted where they are few, and the planner's estimate beyond. Knows no table. */
import type { DataSource } from "typeorm";
import { COUNT_EXACT_MAX } from "../limits.js";
import { preparedRows, rows, statementName } from "./database.js";

/** `exact` false: more than COUNT_EXACT_MAX, by the database's own statistics. */
export interface Count {
  count: number;
  exact: boolean;
}

interface Explained {
  "QUERY PLAN": [{ Plan: { "Plan Rows": number } }];
}

/** @param from what stands behind FROM, with its conditions */
export async function countUpTo(db: DataSource, from: string, parameters: unknown[]): Promise<Count> {
  const bound = COUNT_EXACT_MAX + 1;
  const counted = `SELECT count(*) FROM (SELECT FROM ${from} LIMIT ${bound}) AS counted`;
  const [found] = await preparedRows<{ count: number }>(db, statementName(counted), counted, parameters);
  if (found!.count < bound) return { count: found!.count, exact: true };
  const [plan] = await rows<Explained>(db, `EXPLAIN (FORMAT JSON) SELECT FROM ${from}`, parameters);
  return { count: Math.max(bound, Math.round(plan!["QUERY PLAN"][0].Plan["Plan Rows"])), exact: false };
}
