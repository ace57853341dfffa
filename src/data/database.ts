/** Opens the connection pools to PostgreSQL, executes statements, migrates the schema, and classifies the errors of statements. */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import {
  DataSource,
  type EntityManager,
  type EntitySubscriberInterface,
  MigrationExecutor,
  QueryRunnerAlreadyReleasedError,
  QueryRunnerProviderAlreadyReleasedError,
} from "typeorm";
import {
  createClient,
  createPreparedStatementPool,
  isClientStatementTimeout,
  isConnectionFault,
  MIGRATION_POOL_OPTIONS,
  POOLER_CONNECTION_OPTIONS,
  queryPreparedRowsInPool,
  READ_ONLY_SQLSTATE,
  TIME_LIMITED_POOL_OPTIONS,
} from "../postgres.js";
import { ActionRow } from "./action.js";
import { AppRow } from "./app.js";
import { MIGRATIONS } from "./migrations.js";
import { checkSchemaCompatibility, type ExecuteQuery, storeSchemaCompatibility } from "./schema-guard.js";

/** Entity classes of TypeORM. All other tables are accessed only with SQL. */
export const ENTITY_CLASSES = [ActionRow, AppRow];

/** Key of the advisory lock for migrations. The number has no meaning. */
const MIGRATION_LOCK_KEY = 7_203_114_285_021;
const LOCK_POLL_MS = 100;
/** Maximum time that a migration waits for a table lock. While it waits, all later statements on the table wait too. */
const TABLE_LOCK_TIMEOUT = "500ms";
const TABLE_LOCK_RETRY_MS = 500;
const TABLE_LOCK_ATTEMPTS = 300;
/** Sets TABLE_LOCK_TIMEOUT in each transaction of a migration. Index builds run outside of transactions and need no timeout. */
const LOCK_TIMEOUT_SUBSCRIBER: EntitySubscriberInterface = {
  afterTransactionStart: ({ queryRunner }) => queryRunner.query(`SET LOCAL lock_timeout = '${TABLE_LOCK_TIMEOUT}'`),
};

/** Maximum connections of a process in TypeORM's pool. */
export const DATABASE_POOL_CONNECTIONS = 10;
/** Maximum connections of a process in the pool for prepared statements, if TypeORM's pool has its default size. */
export const PREPARED_STATEMENT_CONNECTIONS = 6;
const STATEMENT_POOL_RATIO = PREPARED_STATEMENT_CONNECTIONS / DATABASE_POOL_CONNECTIONS;

/** Number of connections, in addition to the pools, that only `queryOnReservedConnection` uses. */
export const RESERVED_CONNECTIONS = 1;
/**
 * Maximum milliseconds to open the reserved connection. Each statement on it, such as the renewal of a process's lease (lease.ts), has the
 * same limit.
 */
const RESERVED_CONNECTION_LIMIT_MS = 3_000;

/** Connections to PostgreSQL. TypeORM calls them a DataSource; in this service, a data source is a table of entries. */
export type Db = DataSource;

/** TypeORM's pool, a pool for prepared statements (`statementPool`), and a connection that requests do not use (`reservedPool`). */
class Database extends DataSource {
  readonly statementPool: pg.Pool;
  readonly reservedPool: pg.Pool;

  constructor(options: ConstructorParameters<typeof DataSource>[0], sessionUrl: string, poolSize: number) {
    super(options);
    this.statementPool = createPreparedStatementPool(sessionUrl, Math.ceil(poolSize * STATEMENT_POOL_RATIO));
    this.reservedPool = createPreparedStatementPool(sessionUrl, RESERVED_CONNECTIONS, RESERVED_CONNECTION_LIMIT_MS);
  }

  override async destroy(): Promise<void> {
    await Promise.all([super.destroy(), this.statementPool.end(), this.reservedPool.end()]);
  }
}

export function createDatabase(
  url: string,
  poolSize: number,
  poolOptions: object = TIME_LIMITED_POOL_OPTIONS,
  migrations: readonly (typeof MIGRATIONS)[number][] = MIGRATIONS,
  sessionUrl = url,
): Db {
  const options = {
    type: "postgres" as const,
    url,
    entities: ENTITY_CLASSES,
    migrations: [...migrations],
    migrationsTableName: "migration",
    applicationName: "svc-app-actions",
    poolSize,
    extra: poolOptions,
  };
  return new Database(options, sessionUrl, poolSize);
}

/** Executes SQL statements, in the connection pool or in one transaction. */
export type SqlClient = Pick<EntityManager, "query">;

/** Executes one statement and returns its rows. For UPDATE and DELETE, TypeORM would return [rows, count]. */
export async function rows<T>(executor: SqlClient, sql: string, parameters: unknown[] = []): Promise<T[]> {
  const result: T[] | [T[], number] = await executor.query(sql, parameters);
  return Array.isArray(result[0]) ? result[0] : (result as T[]);
}

const getMainPool = ({ driver }: Db): pg.Pool => (driver as unknown as { master: pg.Pool }).master;

export function countConnections(db: Db): { busy: number; idle: number; waiting: number } {
  const pools = db instanceof Database ? [getMainPool(db), db.statementPool, db.reservedPool] : [getMainPool(db)];
  const sumOverPools = (getCount: (pool: pg.Pool) => number) =>
    pools.reduce((total, pool) => total + getCount(pool), 0);
  const idle = sumOverPools((pool) => pool.idleCount);
  return {
    busy: sumOverPools((pool) => pool.totalCount) - idle,
    idle,
    waiting: sumOverPools((pool) => pool.waitingCount),
  };
}

/**
 * Executes a prepared statement: each connection plans it once and caches the plan under `name`. Use this function for statements that
 * every run or event executes. In a transaction, the statement is not prepared.
 */
export async function queryPreparedRows<T>(
  executor: SqlClient,
  name: string,
  text: string,
  values: unknown[],
): Promise<T[]> {
  if (!(executor instanceof Database)) return rows(executor, text, values);
  return queryPreparedRowsInPool(executor.statementPool, name, text, values);
}

/**
 * Executes a short statement on the reserved connection, so that it does not wait for slow statements of requests. Fails after
 * RESERVED_CONNECTION_LIMIT_MS, but the database may still execute the statement.
 */
export async function queryOnReservedConnection<T>(
  db: SqlClient,
  name: string,
  text: string,
  values: unknown[],
): Promise<T[]> {
  return db instanceof Database ? queryPreparedRowsInPool(db.reservedPool, name, text, values) : rows(db, text, values);
}

/**
 * Returns a name for a generated prepared statement, unique for its text. Each connection caches a plan for each name, so use this function
 * only if there are few different texts.
 */
export const createPreparedStatementName = (text: string): string =>
  createHash("sha1").update(text).digest("base64url");

/** Returns the PostgreSQL driver's error: for prepared statements, `error` itself; otherwise the error that TypeORM has wrapped. */
const getDriverError = (error: unknown): Partial<pg.DatabaseError> =>
  (error as { driverError?: pg.DatabaseError } | null)?.driverError ?? (error as Partial<pg.DatabaseError>);

/** Errors that TypeORM throws if the connection of a transaction is lost between two statements. */
const LOST_CONNECTION_ERRORS = [QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/** True if the database was not available, or a time limit ended the statement. The statement may still have been executed. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return LOST_CONNECTION_ERRORS.some((kind) => error instanceof kind) || isConnectionFault(getDriverError(error));
}

/** True if the database rejected a row as a duplicate. With `constraint`, true only for the unique index of this name. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint: violatedConstraint } = getDriverError(error);
  return code === "23505" && (constraint === undefined || violatedConstraint === constraint);
}

/** Returns the name of the unique index that a duplicate row violates; null for other errors. */
export function findViolatedUniqueIndex(error: unknown): string | null {
  const { code, constraint } = getDriverError(error);
  return code === "23505" ? (constraint ?? "") : null;
}

export function findViolatedForeignKey(error: unknown): string | null {
  const { code, constraint } = getDriverError(error);
  return code === "23503" ? (constraint ?? "") : null;
}

export function isDeadlock(error: unknown): boolean {
  return getDriverError(error).code === "40P01";
}

/** True if the database rejected the values of the statement (SQLSTATE classes 22 and 54), so that a retry would fail too. */
export function isInvalidDataError(error: unknown): boolean {
  const { code = "" } = getDriverError(error);
  return /^(22|54)/.test(code);
}

/** True if PostgreSQL failed with an internal error (SQLSTATE class XX), for example because stored data is damaged. */
export function isInternalDatabaseError(error: unknown): boolean {
  return /^XX/.test(getDriverError(error).code ?? "");
}

/** True if PostgreSQL cannot store a text, for example because it contains the character U+0000. */
export function isUnstorableTextError(error: unknown): boolean {
  const { code = "" } = getDriverError(error);
  return code === "22021" || code === "22P05";
}

export function isConnectionLimitReached(error: unknown): boolean {
  return getDriverError(error).code === "53300";
}

/** True if the database rejected a write because it is read-only, for example after a failover. */
export function isReadOnlyError(error: unknown): boolean {
  return getDriverError(error).code === READ_ONLY_SQLSTATE;
}

export function isLockTimeout(error: unknown): boolean {
  return getDriverError(error).code === "55P03";
}

/** True if PostgreSQL cancelled a statement, for example because of its time limit. The statement has changed nothing. */
export function isStatementTimeout(error: unknown): boolean {
  return getDriverError(error).code === "57014";
}

/** True if a statement took too long. In contrast to `isStatementTimeout`, PostgreSQL may still execute the statement. */
export function isSlowStatementError(error: unknown): boolean {
  return isStatementTimeout(error) || isClientStatementTimeout(getDriverError(error));
}

/**
 * Opens pools of connections, but does not migrate the schema.
 * @param sessionUrl URL of the database without its pooler, if `url` leads to a pooler
 */
export async function openDatabase(url: string, poolSize = DATABASE_POOL_CONNECTIONS, sessionUrl = url): Promise<Db> {
  const poolOptions = sessionUrl === url ? TIME_LIMITED_POOL_OPTIONS : POOLER_CONNECTION_OPTIONS;
  return createDatabase(url, poolSize, poolOptions, MIGRATIONS, sessionUrl).initialize();
}

/** Runs `work` while this process holds the advisory lock for migrations. Other processes that call this function wait. */
export async function withSchemaLock<T>(url: string, work: (query: ExecuteQuery) => Promise<T>): Promise<T> {
  const client = createClient(url);
  await client.connect();
  try {
    // Polls instead of waiting in a statement. The process with the lock may run CREATE INDEX CONCURRENTLY, which waits for all open
    // statements. A statement that waits for the lock would therefore cause a deadlock.
    const tryLockSql = 'SELECT pg_try_advisory_lock($1) AS "isLocked"';
    while (!(await client.query<{ isLocked: boolean }>(tryLockSql, [MIGRATION_LOCK_KEY])).rows[0]!.isLocked)
      await delay(LOCK_POLL_MS);
    return await work(async (sql) => (await client.query(sql)).rows);
  } finally {
    await client.end();
  }
}

/** Repeats `work` up to TABLE_LOCK_ATTEMPTS times if it does not get a table lock in time, or ends in a deadlock. */
async function withTableLocks(work: () => Promise<unknown>): Promise<void> {
  for (let attemptsLeft = TABLE_LOCK_ATTEMPTS; ; attemptsLeft -= 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (attemptsLeft === 0 || !(isLockTimeout(error) || isDeadlock(error))) throw error;
      await delay(TABLE_LOCK_RETRY_MS);
    }
  }
}

/** Executes the pending migrations. The caller must hold the lock of `withSchemaLock`. */
export async function migrateSchema(url: string, migrations: readonly (typeof MIGRATIONS)[number][]): Promise<void> {
  const database = await createDatabase(url, 1, MIGRATION_POOL_OPTIONS, migrations).initialize();
  database.subscribers.push(LOCK_TIMEOUT_SUBSCRIBER);
  const queryRunner = database.createQueryRunner();
  try {
    const executor = new MigrationExecutor(database, queryRunner);
    executor.transaction = "each";
    await withTableLocks(() => executor.executePendingMigrations());
  } finally {
    await queryRunner.release();
    await database.destroy();
  }
}

const RELEASE_MIGRATION_NAMES = MIGRATIONS.map(({ name }) => name);

/**
 * Migrates the schema to the version of this release, and stores which releases can run with it. The caller must hold the lock of
 * `withSchemaLock`.
 */
export async function migrateToCurrentSchema(url: string, query: ExecuteQuery): Promise<void> {
  await migrateSchema(url, MIGRATIONS);
  await storeSchemaCompatibility(query, RELEASE_MIGRATION_NAMES);
}

/**
 * Migrates the schema to the version of this release. Several processes can call this function at the same time.
 * @returns the names of the executed migrations
 * @throws StartError, without any change, if the schema is too new for this release
 */
export const migrateDatabase = (url: string): Promise<string[]> =>
  withSchemaLock(url, async (query) => {
    const applied = await checkSchemaCompatibility(query, RELEASE_MIGRATION_NAMES);
    const pending = RELEASE_MIGRATION_NAMES.filter((name) => !applied.includes(name));
    if (pending.length > 0) await migrateSchema(url, MIGRATIONS);
    await storeSchemaCompatibility(query, RELEASE_MIGRATION_NAMES);
    return pending;
  });
