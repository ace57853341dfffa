/** Counts the rows that PostgreSQL reads for the statements of a test, by executing each statement also with EXPLAIN ANALYZE. */
import pg from "pg";
import type { Db } from "../../src/data/database.js";

export interface PlanReading {
  text: string;
  /** Number of rows read from all tables and indexes, including those that a filter removed. */
  read: number;
}

interface QueryPlan {
  "Relation Name"?: string;
  "Index Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  Plans?: QueryPlan[];
}

interface StatementExecutor {
  query(sql: string, values?: unknown[]): Promise<unknown>;
}

function countRowsRead(plan: QueryPlan): number {
  const each =
    plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0) + (plan["Rows Removed by Index Recheck"] ?? 0);
  const own = plan["Relation Name"] || plan["Index Name"] ? each * plan["Actual Loops"] : 0;
  return (plan.Plans ?? []).reduce((sum, below) => sum + countRowsRead(below), own);
}

const rowsOf = (answer: unknown) =>
  (Array.isArray(answer) ? answer : (answer as { rows: unknown[] }).rows) as { "QUERY PLAN": [{ Plan: QueryPlan }] }[];

const EXPLAIN_ANALYZE = "EXPLAIN (ANALYZE, TIMING off, FORMAT JSON)";
const literal = (value: unknown) =>
  typeof value === "number" ? String(value) : pg.escapeLiteral(Array.isArray(value) ? `{${value}}` : String(value));

export async function countRowsReadBy(db: Db, sql: string, values: unknown[]): Promise<number> {
  return countRowsRead(rowsOf(await db.query(`${EXPLAIN_ANALYZE} ${sql}`, values))[0]!["QUERY PLAN"][0].Plan);
}

/**
 * Calls `work` with a database that records each SELECT or WITH statement of a transaction, and each prepared statement. Returns the number
 * of rows that each of them reads.
 */
export async function countReadings(db: Db, work: (watched: Db) => Promise<unknown>): Promise<PlanReading[]> {
  const readings: PlanReading[] = [];
  const recordStatement = (text: string, answer: unknown) =>
    readings.push({ text, read: countRowsRead(rowsOf(answer)[0]!["QUERY PLAN"][0].Plan) });
  const { statements } = db as unknown as { statements: pg.Pool };

  async function queryPrepared(statement: { name: string; text: string; values: unknown[] }): Promise<unknown> {
    const client = await statements.connect();
    try {
      await client.query(`PREPARE walked AS ${statement.text}`);
      recordStatement(
        statement.text,
        await client.query(`${EXPLAIN_ANALYZE} EXECUTE walked(${statement.values.map(literal).join(", ")})`),
      );
      await client.query("DEALLOCATE walked");
    } finally {
      client.release();
    }
    return statements.query(statement);
  }
  const recordStatements = (executor: StatementExecutor): StatementExecutor => ({
    async query(sql, values) {
      if (/^\s*(SELECT|WITH)\b/.test(sql))
        recordStatement(sql, await executor.query(`${EXPLAIN_ANALYZE} ${sql}`, values));
      return executor.query(sql, values);
    },
  });
  await work(
    Object.create(db, {
      statements: { value: { query: queryPrepared } },
      transaction: {
        value: (inside: (manager: StatementExecutor) => unknown) =>
          db.transaction(async (manager) => inside(recordStatements(manager))),
      },
    }) as Db,
  );
  return readings;
}
