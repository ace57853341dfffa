/**
 * Explains the statements of a test: counts the rows that PostgreSQL reads for them, by executing each statement also with EXPLAIN ANALYZE,
 * or lists the tables that PostgreSQL opens for them.
 */
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
  /** Tables that the plan's node changes, if they are several. */
  "Target Tables"?: { "Relation Name"?: string }[];
  Plans?: QueryPlan[];
}

interface StatementExecutor {
  query(sql: string, values?: unknown[]): Promise<unknown>;
}

function countRowsRead(plan: QueryPlan): number {
  const rowsPerLoop =
    plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0) + (plan["Rows Removed by Index Recheck"] ?? 0);
  const ownRows = plan["Relation Name"] || plan["Index Name"] ? rowsPerLoop * plan["Actual Loops"] : 0;
  return (plan.Plans ?? []).reduce((sum, below) => sum + countRowsRead(below), ownRows);
}

const rowsOf = (answer: unknown) =>
  (Array.isArray(answer) ? answer : (answer as { rows: unknown[] }).rows) as { "QUERY PLAN": [{ Plan: QueryPlan }] }[];

const EXPLAIN_ANALYZE = "EXPLAIN (ANALYZE, TIMING off, FORMAT JSON)";
const arrayText = (values: readonly unknown[]) =>
  `{${values.map((value) => (value === null ? "NULL" : JSON.stringify(String(value)))).join(",")}}`;
function literal(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return String(value);
  return pg.escapeLiteral(Array.isArray(value) ? arrayText(value) : String(value));
}

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
  const { statementPool } = db as unknown as { statementPool: pg.Pool };

  async function queryPrepared(statement: { name: string; text: string; values: unknown[] }): Promise<unknown> {
    const client = await statementPool.connect();
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
    return statementPool.query(statement);
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
      statementPool: { value: { query: queryPrepared } },
      transaction: {
        value: (inside: (manager: StatementExecutor) => unknown) =>
          db.transaction(async (manager) => inside(recordStatements(manager))),
      },
    }) as Db,
  );
  return readings;
}

interface OpenedTables {
  text: string;
  /** Tables and partitions that PostgreSQL opens for the statement, also those that it only changes. */
  tables: string[];
}

const listTables = (plan: QueryPlan): string[] => [
  ...(plan["Relation Name"] ? [plan["Relation Name"]] : []),
  ...(plan["Target Tables"] ?? []).flatMap((target) => target["Relation Name"] ?? []),
  ...(plan.Plans ?? []).flatMap(listTables),
];

/**
 * Calls `work` with a database that explains each prepared statement with its generic plan, and each other statement with the plan for its
 * values, before it executes the statement. Returns the tables of each statement.
 */
export async function listOpenedTables(db: Db, work: (watched: Db) => Promise<unknown>): Promise<OpenedTables[]> {
  const opened: OpenedTables[] = [];
  const record = (text: string, answer: unknown) =>
    opened.push({ text, tables: listTables(rowsOf(answer)[0]!["QUERY PLAN"][0].Plan) });
  const { statementPool } = db as unknown as { statementPool: pg.Pool };

  async function queryPrepared(statement: { name: string; text: string; values: unknown[] }): Promise<unknown> {
    const client = await statementPool.connect();
    try {
      await client.query(`PREPARE explained AS ${statement.text}`);
      const values = statement.values.map(literal).join(", ");
      record(statement.text, await client.query(`EXPLAIN (FORMAT JSON) EXECUTE explained(${values})`));
      await client.query("DEALLOCATE explained");
    } finally {
      client.release();
    }
    return statementPool.query(statement);
  }
  const explain = (executor: StatementExecutor): StatementExecutor["query"] =>
    async function query(sql, values) {
      if (/^\s*(SELECT|WITH|UPDATE|INSERT|DELETE)\b/.test(sql))
        record(sql, await executor.query(`EXPLAIN (FORMAT JSON) ${sql}`, values));
      return executor.query(sql, values);
    };
  await work(
    Object.create(db, {
      statementPool: { value: { query: queryPrepared } },
      query: { value: explain(db) },
      transaction: {
        value: (inside: (manager: StatementExecutor) => unknown) =>
          db.transaction(async (manager) => inside({ query: explain(manager) })),
      },
    }) as Db,
  );
  return opened;
}
