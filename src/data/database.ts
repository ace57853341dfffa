/** Opens the connection pool to PostgreSQL and migrates the schema. */
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
  TIME_LIMITED_POOL_OPTIONS,
} from "../postgres.js";
import { ActionRow } from "./action.js";
import { AppRow } from "./app.js";
import { MIGRATIONS } from "./migrations.js";
import { checkSchemaCompatibility, type ExecuteQuery, storeSchemaCompatibility } from "./schema-guard.js";

/** Entity classes of TypeORM. All other tables are read and written only with SQL. */
export const ENTITY_CLASSES = [ActionRow, AppRow];

/** Key of the advisory lock that guards migrations: an arbitrary number that no other program on the database uses. */
const MIGRATION_LOCK = 7_203_114_285_021;
const LOCK_POLL_MS = 100;
/**
 * Maximum time that a migration waits for a table lock. Meanwhile all other statements on the table wait behind the
 * migration. So the migration gives up before PostgreSQL checks for a deadlock (`deadlock_timeout`, one second), and
 * tries again.
 */
const TABLE_LOCK_TIMEOUT = "500ms";
const TABLE_LOCK_RETRY_MS = 500;
const TABLE_LOCK_ATTEMPTS = 300;
/**
 * Sets the lock timeout in each transaction of a migration. Migrations that build indexes run without a transaction and
 * need no timeout, because they block no other statement.
 */
const LOCK_TIMEOUT_SUBSCRIBER: EntitySubscriberInterface = {
  afterTransactionStart: ({ queryRunner }) => queryRunner.query(`SET LOCAL lock_timeout = '${TABLE_LOCK_TIMEOUT}'`),
};

/**
 * Maximum connections of a process to the database in the general pool. A second pool, for prepared statements, has
 * PREPARED_STATEMENT_CONNECTIONS in addition.
 */
export const DATABASE_POOL_CONNECTIONS = 10;
export const PREPARED_STATEMENT_CONNECTIONS = 6;
const STATEMENT_POOL_RATIO = PREPARED_STATEMENT_CONNECTIONS / DATABASE_POOL_CONNECTIONS;

/** Number of additional connections, which only `queryOnReservedConnection` uses. */
export const RESERVED_CONNECTIONS = 1;
/**
 * Maximum time in milliseconds to open a reserved connection, and of a statement on it. It is a quarter of the lease of a
 * process (`lease.ts`), so that another connection can renew the lease in time if a connection goes silent.
 */
const RESERVED_LIMIT_MS = 3_000;

/** Connections to PostgreSQL. TypeORM calls them a data source, which in this service is a table of entries. */
export type Db = DataSource;

/**
 * Connection pool, with a second pool (`statements`) for prepared statements, and a connection (`reserved`) that requests cannot use.
 */
class Database extends DataSource {
  readonly statements: pg.Pool;
  readonly reserved: pg.Pool;

  constructor(options: ConstructorParameters<typeof DataSource>[0], sessionUrl: string, poolSize: number) {
    super(options);
    this.statements = createPreparedStatementPool(sessionUrl, Math.ceil(poolSize * STATEMENT_POOL_RATIO));
    this.reserved = createPreparedStatementPool(sessionUrl, RESERVED_CONNECTIONS, RESERVED_LIMIT_MS);
  }

  override async destroy(): Promise<void> {
    await Promise.all([super.destroy(), this.statements.end(), this.reserved.end()]);
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

/** Runs SQL statements: in the connection pool, or in one transaction. */
export type SqlClient = Pick<EntityManager, "query">;

/**
 * Executes one statement, and returns its rows. TypeORM returns [rows, count] for UPDATE and DELETE; this function
 * always returns the rows.
 */
export async function rows<T>(executor: SqlClient, sql: string, parameters: unknown[] = []): Promise<T[]> {
  const answer: T[] | [T[], number] = await executor.query(sql, parameters);
  return Array.isArray(answer[0]) ? answer[0] : (answer as T[]);
}

const mainPoolOf = ({ driver }: Db): pg.Pool => (driver as unknown as { master: pg.Pool }).master;

/** Returns the numbers of busy and idle connections in all pools, and of callers that wait for a connection. */
export function countConnections(db: Db): { busy: number; idle: number; waiting: number } {
  const pools = db instanceof Database ? [mainPoolOf(db), db.statements, db.reserved] : [mainPoolOf(db)];
  const sum = (countIn: (pool: pg.Pool) => number) => pools.reduce((total, pool) => total + countIn(pool), 0);
  const idle = sum((pool) => pool.idleCount);
  return { busy: sum((pool) => pool.totalCount) - idle, idle, waiting: sum((pool) => pool.waitingCount) };
}

/**
 * Executes a prepared statement: each connection plans the statement once and caches the plan under `name`. Use it for
 * statements that every run or event executes. In a transaction, the statement is not prepared.
 */
export async function queryPreparedRows<T>(
  executor: SqlClient,
  name: string,
  text: string,
  values: unknown[],
): Promise<T[]> {
  if (!(executor instanceof Database)) return rows(executor, text, values);
  return queryPreparedRowsInPool(executor.statements, name, text, values);
}

/**
 * Executes a short statement over a connection that no request uses, and returns its rows. So the statement does not wait
 * while slow statements of requests use all other connections. It fails after RESERVED_LIMIT_MS; the database may still
 * execute it.
 */
export async function queryOnReservedConnection<T>(
  db: SqlClient,
  name: string,
  text: string,
  values: unknown[],
): Promise<T[]> {
  return db instanceof Database ? queryPreparedRowsInPool(db.reserved, name, text, values) : rows(db, text, values);
}

/**
 * Returns a unique name for the text of a generated statement. Use it only if there are few different texts, because
 * each connection caches a plan for each name.
 */
export const createPreparedStatementName = (text: string): string =>
  createHash("sha1").update(text).digest("base64url");

/**
 * Returns the original error of the PostgreSQL driver. TypeORM wraps it in another error; prepared statements throw it
 * directly.
 */
const driverErrorOf = (error: unknown): Partial<pg.DatabaseError> =>
  (error as { driverError?: pg.DatabaseError } | null)?.driverError ?? (error as Partial<pg.DatabaseError>);

/** Errors that TypeORM throws if a transaction loses its connection between two statements. */
const LOST_CONNECTION_ERRORS = [QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/**
 * True if the database was not available, or cancelled the statement because of a time limit. The statement may still
 * have been executed.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  return LOST_CONNECTION_ERRORS.some((kind) => error instanceof kind) || isConnectionFault(driverErrorOf(error));
}

/** True if the database rejected a row as a duplicate. If `constraint` is passed, true only for the unique index of this name. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint: violated } = driverErrorOf(error);
  return code === "23505" && (constraint === undefined || violated === constraint);
}

/** Returns the name of the unique index because of which the database rejected a duplicate; null for other errors. */
export function findViolatedUniqueIndex(error: unknown): string | null {
  const { code, constraint } = driverErrorOf(error);
  return code === "23505" ? (constraint ?? "") : null;
}

/** Returns the name of the foreign key that a row violates, because the referenced row does not exist; null for other errors. */
export function findViolatedForeignKey(error: unknown): string | null {
  const { code, constraint } = driverErrorOf(error);
  return code === "23503" ? (constraint ?? "") : null;
}

/** True if PostgreSQL ended the transaction because of a deadlock. */
export function isDeadlock(error: unknown): boolean {
  return driverErrorOf(error).code === "40P01";
}

/** True if the database rejected the values of the statement (SQLSTATE classes 22 and 54), so that a retry is useless. */
export function isInvalidDataError(error: unknown): boolean {
  const { code = "" } = driverErrorOf(error);
  return /^(22|54)/.test(code);
}

/** True if PostgreSQL failed with an internal error (SQLSTATE class XX), for example because stored data is damaged. */
export function isInternalDatabaseError(error: unknown): boolean {
  return /^XX/.test(driverErrorOf(error).code ?? "");
}

/** True if PostgreSQL cannot store a text, for example because it contains the character U+0000. */
export function isUnstorableTextError(error: unknown): boolean {
  const { code = "" } = driverErrorOf(error);
  return code === "22021" || code === "22P05";
}

/** True if PostgreSQL rejected a new connection because it already has its maximum number of connections. */
export function isConnectionLimitReached(error: unknown): boolean {
  return driverErrorOf(error).code === "53300";
}

/** True if a statement did not get a lock within its lock timeout. */
export function isLockTimeout(error: unknown): boolean {
  return driverErrorOf(error).code === "55P03";
}

/** True if PostgreSQL cancelled a statement because of its time limit, so that the statement has changed nothing. */
export function isStatementTimeout(error: unknown): boolean {
  return driverErrorOf(error).code === "57014";
}

/** True if a statement took too long. Unlike after `isStatementTimeout`, PostgreSQL may still execute the statement. */
export function isSlowStatementError(error: unknown): boolean {
  return isStatementTimeout(error) || isClientStatementTimeout(driverErrorOf(error));
}

/**
 * Opens a pool of `poolSize` connections. Does not migrate the schema.
 * @param sessionUrl URL of the database itself if `url` is that of a pooler; used for statements that need a session
 */
export async function openDatabase(url: string, poolSize = DATABASE_POOL_CONNECTIONS, sessionUrl = url): Promise<Db> {
  const extra = sessionUrl === url ? TIME_LIMITED_POOL_OPTIONS : POOLER_CONNECTION_OPTIONS;
  return createDatabase(url, poolSize, extra, MIGRATIONS, sessionUrl).initialize();
}

/** Runs `work` while this process holds the schema lock. Other processes that call this function wait. */
export async function withSchemaLock<T>(url: string, work: (query: ExecuteQuery) => Promise<T>): Promise<T> {
  const client = createClient(url);
  await client.connect();
  try {
    // Polls the lock instead of waiting for it in a statement. CREATE INDEX CONCURRENTLY in another process waits until
    // all open statements have ended, so it and a waiting statement would block each other.
    const lock = "SELECT pg_try_advisory_lock($1) AS taken";
    while (!(await client.query<{ taken: boolean }>(lock, [MIGRATION_LOCK])).rows[0]!.taken) await delay(LOCK_POLL_MS);
    return await work(async (sql) => (await client.query(sql)).rows);
  } finally {
    await client.end();
  }
}

/** Repeats `work` while it fails because it did not get a table lock in time. */
async function withTableLocks(work: () => Promise<unknown>): Promise<void> {
  for (let left = TABLE_LOCK_ATTEMPTS; ; left -= 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (left === 0 || !(isLockTimeout(error) || isDeadlock(error))) throw error;
      await delay(TABLE_LOCK_RETRY_MS);
    }
  }
}

/** Executes the pending migrations. The caller must hold the schema lock. */
export async function migrateSchema(url: string, migrations: readonly (typeof MIGRATIONS)[number][]): Promise<void> {
  const source = await createDatabase(url, 1, MIGRATION_POOL_OPTIONS, migrations).initialize();
  source.subscribers.push(LOCK_TIMEOUT_SUBSCRIBER);
  const runner = source.createQueryRunner();
  try {
    const executor = new MigrationExecutor(source, runner);
    executor.transaction = "each";
    await withTableLocks(() => executor.executePendingMigrations());
  } finally {
    await runner.release();
    await source.destroy();
  }
}

const RELEASE_MIGRATIONS = MIGRATIONS.map(({ name }) => name);

/**
 * Migrates the schema to the version of this release, and stores which releases can run with the schema. The caller must
 * hold the schema lock.
 */
export async function migrateToCurrentSchema(url: string, query: ExecuteQuery): Promise<void> {
  await migrateSchema(url, MIGRATIONS);
  await storeSchemaCompatibility(query, RELEASE_MIGRATIONS);
}

/**
 * Migrates the schema to the version of this release. Several processes can call it at the same time.
 * @returns the names of the migrations that it executed
 * @throws StartError, without any change, if the schema is too new for this release
 */
export const migrateDatabase = (url: string): Promise<string[]> =>
  withSchemaLock(url, async (query) => {
    const applied = await checkSchemaCompatibility(query, RELEASE_MIGRATIONS);
    const pending = RELEASE_MIGRATIONS.filter((name) => !applied.includes(name));
    if (pending.length > 0) await migrateSchema(url, MIGRATIONS);
    await storeSchemaCompatibility(query, RELEASE_MIGRATIONS);
    return pending;
  });
