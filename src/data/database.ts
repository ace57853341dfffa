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
import { Foundation1763600000000 } from "../../migrations/1763600000000-foundation.js";
import { Settings1763600001000 } from "../../migrations/1763600001000-settings.js";
import { Actions1763600002000 } from "../../migrations/1763600002000-actions.js";
import { Runs1763600003000 } from "../../migrations/1763600003000-runs.js";
import { Triggers1763600008000 } from "../../migrations/1763600008000-triggers.js";
import { Console1763600020000 } from "../../migrations/1763600020000-console.js";
import { Idempotency1763600040000 } from "../../migrations/1763600040000-idempotency.js";
import { VersionSummary1763600041000 } from "../../migrations/1763600041000-version-summary.js";
import { ClientActions1763600050000 } from "../../migrations/1763600050000-client-actions.js";
import { AppVersions1763600060000 } from "../../migrations/1763600060000-app-versions.js";
import { PageSessions1763600061000 } from "../../migrations/1763600061000-page-sessions.js";
import { Retention1763600070000 } from "../../migrations/1763600070000-retention.js";
import { PageSessionsOfASignIn1763600081000 } from "../../migrations/1763600081000-page-sessions-of-a-sign-in.js";
import { SecretValues1763600082000 } from "../../migrations/1763600082000-secret-values.js";
import { EntryBytes1763600083000 } from "../../migrations/1763600083000-entry-bytes.js";
import { QueueTurns1763600085000 } from "../../migrations/1763600085000-queue-turns.js";
import { PayloadOnce1763600086000 } from "../../migrations/1763600086000-payload-once.js";
import { ActionChanges1763600090000 } from "../../migrations/1763600090000-action-changes.js";
import { DataSources1763600100000 } from "../../migrations/1763600100000-data-sources.js";
import { EntrySize1763600100500 } from "../../migrations/1763600100500-entry-size.js";
import { DataSourceChanges1763600101000 } from "../../migrations/1763600101000-data-source-changes.js";
import { Media1763600110000 } from "../../migrations/1763600110000-media.js";
import { Messages1763600120000 } from "../../migrations/1763600120000-messages.js";
import { Notifications1763600130000 } from "../../migrations/1763600130000-notifications.js";
import { KeptScripts1763600140000 } from "../../migrations/1763600140000-kept-scripts.js";
import { VerificationCodes1763600160100 } from "../../migrations/1763600160100-verification-codes.js";
import { PushDeliveriesHeld1763600160200 } from "../../migrations/1763600160200-push-deliveries-held.js";
import { RunHistory1763600175000 } from "../../migrations/1763600175000-run-history.js";
import { BoundsOfRows1763600180000 } from "../../migrations/1763600180000-bounds-of-rows.js";
import { BoundsChecked1763600180100 } from "../../migrations/1763600180100-bounds-checked.js";
import {
  PartitionsOfEntries1763600180200,
  PartitionsOfEvents1763600180300,
  PartitionsOfRuns1763600180500,
  PartitionsOfTrail1763600180400,
} from "../../migrations/1763600180200-partitions.js";
import { Searches1763600180600 } from "../../migrations/1763600180600-searches.js";
import { SchedulesPaused1763600180700 } from "../../migrations/1763600180700-schedules-paused.js";
import { RunTraces1763600190000 } from "../../migrations/1763600190000-run-traces.js";
import { Alerts1763600190100 } from "../../migrations/1763600190100-alerts.js";
import { RunLimits1763600200000 } from "../../migrations/1763600200000-run-limits.js";
import { ScriptUses1763600240000 } from "../../migrations/1763600240000-script-uses.js";
import { Declarations1763600260000 } from "../../migrations/1763600260000-declarations.js";
import { AppUsers1764000400000 } from "../../migrations/1764000400000-app-users.js";
import { CredentialsOfPeople1764000410000 } from "../../migrations/1764000410000-credentials-of-people.js";
import { SettingsState1764000500000 } from "../../migrations/1764000500000-settings-state.js";
import { MediaStoreIdentity1764000700000 } from "../../migrations/1764000700000-media-store-identity.js";
import { IgnoredProxy1764000750000 } from "../../migrations/1764000750000-ignored-proxy.js";
import { RunSandbox1764000900000 } from "../../migrations/1764000900000-run-sandbox.js";
import { IntegrationOrigins1764001000000 } from "../../migrations/1764001000000-integration-origins.js";
import { Roles1764001100000 } from "../../migrations/1764001100000-roles.js";
import { Accounts1764100000000 } from "../../migrations/1764100000000-accounts.js";
import { ActionAccess1764100100000 } from "../../migrations/1764100100000-action-access.js";
import { Invitations1764200000000 } from "../../migrations/1764200000000-invitations.js";
import { HttpTriggers1764200150000 } from "../../migrations/1764200150000-http-triggers.js";
import { SignInMethods1764300000000 } from "../../migrations/1764300000000-sign-in-methods.js";
import { DeclaredSettings1764300100000 } from "../../migrations/1764300100000-declared-settings.js";
import { Visitors1764400000000 } from "../../migrations/1764400000000-visitors.js";
import { BrowserHolder1764410000000 } from "../../migrations/1764410000000-browser-holder.js";
import { TokenUses1764500000000 } from "../../migrations/1764500000000-token-uses.js";
import { OauthGrants1764600000000 } from "../../migrations/1764600000000-oauth-grants.js";
import { GrantsOfCredentials1764600000100 } from "../../migrations/1764600000100-grants-of-credentials.js";
import { ScheduleJitter1764600003100 } from "../../migrations/1764600003100-schedule-jitter.js";
import { RunRequests1764700000000 } from "../../migrations/1764700000000-run-requests.js";
import { SecretBindings1764700100000 } from "../../migrations/1764700100000-secret-bindings.js";
import { AiUsage1764900000000 } from "../../migrations/1764900000000-ai-usage.js";
import { OriginIndex1765000000000 } from "../../migrations/1765000000000-origin-index.js";
import { VisitorsIndexes1765900000000 } from "../../migrations/1765900000000-visitors-indexes.js";
import { ActionSource1765900100000 } from "../../migrations/1765900100000-action-source.js";
import { Stages1765900200000 } from "../../migrations/1765900200000-stages.js";
import { QueuedNotices1766000000000 } from "../../migrations/1766000000000-queued-notices.js";
import { RoleTimes1766100000000 } from "../../migrations/1766100000000-role-times.js";
import { AdministratorTimes1766200000000 } from "../../migrations/1766200000000-administrator-times.js";
import { GrantMakers1766300000000 } from "../../migrations/1766300000000-grant-makers.js";
import { GrantsOfMakers1766300000100 } from "../../migrations/1766300000100-grants-of-makers.js";
import { PublishedVersions1766400000000 } from "../../migrations/1766400000000-published-versions.js";
import { TestsRequired1766500000000 } from "../../migrations/1766500000000-tests-required.js";
import {
  BOUNDED_POOL,
  createStatementPool,
  isConnectionFault,
  namedRows,
  PATIENT_POOL,
  POOLED_POOL,
} from "../postgres.js";
import { ActionRow } from "./action.js";
import { AppRow } from "./app.js";
import { checkSchema, declareSchema, type Query } from "./schema-guard.js";

/** Tables that are used as entities. All others are used only in SQL. */
export const ROWS = [ActionRow, AppRow];

export const MIGRATIONS = [
  Foundation1763600000000,
  Settings1763600001000,
  Actions1763600002000,
  Runs1763600003000,
  Triggers1763600008000,
  Console1763600020000,
  Idempotency1763600040000,
  VersionSummary1763600041000,
  ClientActions1763600050000,
  AppVersions1763600060000,
  PageSessions1763600061000,
  Retention1763600070000,
  PageSessionsOfASignIn1763600081000,
  SecretValues1763600082000,
  EntryBytes1763600083000,
  QueueTurns1763600085000,
  PayloadOnce1763600086000,
  ActionChanges1763600090000,
  DataSources1763600100000,
  EntrySize1763600100500,
  DataSourceChanges1763600101000,
  Media1763600110000,
  Messages1763600120000,
  Notifications1763600130000,
  KeptScripts1763600140000,
  VerificationCodes1763600160100,
  PushDeliveriesHeld1763600160200,
  RunHistory1763600175000,
  BoundsOfRows1763600180000,
  BoundsChecked1763600180100,
  PartitionsOfEntries1763600180200,
  PartitionsOfEvents1763600180300,
  PartitionsOfTrail1763600180400,
  PartitionsOfRuns1763600180500,
  Searches1763600180600,
  SchedulesPaused1763600180700,
  RunTraces1763600190000,
  Alerts1763600190100,
  RunLimits1763600200000,
  ScriptUses1763600240000,
  Declarations1763600260000,
  AppUsers1764000400000,
  CredentialsOfPeople1764000410000,
  SettingsState1764000500000,
  MediaStoreIdentity1764000700000,
  IgnoredProxy1764000750000,
  RunSandbox1764000900000,
  IntegrationOrigins1764001000000,
  Roles1764001100000,
  Accounts1764100000000,
  ActionAccess1764100100000,
  Invitations1764200000000,
  HttpTriggers1764200150000,
  SignInMethods1764300000000,
  DeclaredSettings1764300100000,
  Visitors1764400000000,
  BrowserHolder1764410000000,
  TokenUses1764500000000,
  OauthGrants1764600000000,
  GrantsOfCredentials1764600000100,
  ScheduleJitter1764600003100,
  RunRequests1764700000000,
  SecretBindings1764700100000,
  AiUsage1764900000000,
  OriginIndex1765000000000,
  VisitorsIndexes1765900000000,
  ActionSource1765900100000,
  Stages1765900200000,
  QueuedNotices1766000000000,
  RoleTimes1766100000000,
  AdministratorTimes1766200000000,
  GrantMakers1766300000000,
  GrantsOfMakers1766300000100,
  PublishedVersions1766400000000,
  TestsRequired1766500000000,
];

/** Key of the advisory lock that guards migrations: an arbitrary number that no other program on the database uses. */
const MIGRATION_LOCK = 7_203_114_285_021;
const LOCK_ASKED_MS = 100;
/**
 * A statement that waits for a table lock blocks all statements behind it. Therefore a migration gives up before PostgreSQL checks for a
 * deadlock (`deadlock_timeout`, one second), and is tried again.
 */
const TABLE_LOCK_WAIT = "500ms";
const TABLE_LOCK_AGAIN_MS = 500;
const TABLE_LOCK_TRIES = 300;
/** Only inside transactions. Outside of them indexes are built, which block no other statement. */
const BRIEF_TABLE_LOCKS: EntitySubscriberInterface = {
  afterTransactionStart: ({ queryRunner }) => queryRunner.query(`SET LOCAL lock_timeout = '${TABLE_LOCK_WAIT}'`),
};

/** Connections in the pool of a process, and further ones for prepared statements. */
export const POOL_CONNECTIONS = 10;
export const STATEMENT_CONNECTIONS = 6;
const STATEMENT_SHARE = STATEMENT_CONNECTIONS / POOL_CONNECTIONS;

/** A pool, and connections for statements that are prepared once. */
class Database extends DataSource {
  readonly statements: pg.Pool;

  constructor(options: ConstructorParameters<typeof DataSource>[0], sessionUrl: string, poolSize: number) {
    super(options);
    this.statements = createStatementPool(sessionUrl, Math.ceil(poolSize * STATEMENT_SHARE));
  }

  override async destroy(): Promise<void> {
    await Promise.all([super.destroy(), this.statements.end()]);
  }
}

export function dataSource(
  url: string,
  poolSize: number,
  extra: object = BOUNDED_POOL,
  migrations: readonly (typeof MIGRATIONS)[number][] = MIGRATIONS,
  sessionUrl = url,
): DataSource {
  const options = {
    type: "postgres" as const,
    url,
    entities: ROWS,
    migrations: [...migrations],
    migrationsTableName: "migration",
    applicationName: "svc-app-actions",
    poolSize,
    extra,
  };
  return new Database(options, sessionUrl, poolSize);
}

/** Executes SQL: the pool or one transaction. */
export type Executor = Pick<EntityManager, "query">;

/** Rows of one statement. TypeORM returns [rows, count] for UPDATE and DELETE; this function always returns rows. */
export async function rows<T>(executor: Executor, sql: string, parameters: unknown[] = []): Promise<T[]> {
  const answer: T[] | [T[], number] = await executor.query(sql, parameters);
  return Array.isArray(answer[0]) ? answer[0] : (answer as T[]);
}

const poolOf = ({ driver }: DataSource): pg.Pool => (driver as unknown as { master: pg.Pool }).master;

/** Use of the pool: active and idle connections, and callers that wait for one. */
export function poolUse(db: DataSource): { busy: number; idle: number; waiting: number } {
  const pools = db instanceof Database ? [poolOf(db), db.statements] : [poolOf(db)];
  const sum = (of: (pool: pg.Pool) => number) => pools.reduce((total, pool) => total + of(pool), 0);
  const idle = sum((pool) => pool.idleCount);
  return { busy: sum((pool) => pool.totalCount) - idle, idle, waiting: sum((pool) => pool.waitingCount) };
}

/**
 * Rows of a statement that each connection plans once and caches under `name`, for queries of every run or event. In a transaction it is
 * planned again.
 */
export async function preparedRows<T>(executor: Executor, name: string, text: string, values: unknown[]): Promise<T[]> {
  if (!(executor instanceof Database)) return rows(executor, text, values);
  return namedRows(executor.statements, name, text, values);
}

/** A unique name for each text, for generated statements of few shapes. */
export const statementName = (text: string): string => createHash("sha1").update(text).digest("base64url");

/** The error of the driver. TypeORM wraps it; prepared statements throw it directly. */
const driverErrorOf = (error: unknown): Partial<pg.DatabaseError> =>
  (error as { driverError?: pg.DatabaseError } | null)?.driverError ?? (error as Partial<pg.DatabaseError>);

/** TypeORM's message about a transaction whose connection was lost between two statements. */
const TAKEN_AWAY = [QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/** True if the database was not available or cancelled the statement for its time limit. The statement may still have been executed. */
export function isDatabaseAway(error: unknown): boolean {
  return TAKEN_AWAY.some((kind) => error instanceof kind) || isConnectionFault(driverErrorOf(error));
}

/** True if the database refused a duplicate, by the unique index `constraint` if it is passed. */
export function isDuplicate(error: unknown, constraint?: string): boolean {
  const { code, constraint: violated } = driverErrorOf(error);
  return code === "23505" && (constraint === undefined || violated === constraint);
}

/** Name of the unique index that refused a duplicate; null for other errors. */
export function duplicatedIndex(error: unknown): string | null {
  const { code, constraint } = driverErrorOf(error);
  return code === "23505" ? (constraint ?? "") : null;
}

/** True if a referenced row does not exist. */
export function isMissing(error: unknown): boolean {
  return driverErrorOf(error).code === "23503";
}

/** True if the transaction was ended because of a deadlock. */
export function isDeadlock(error: unknown): boolean {
  return driverErrorOf(error).code === "40P01";
}

/** True if the database refused the values themselves (SQLSTATE classes 22 and 54), so that a retry is useless. */
export function isRefusedData(error: unknown): boolean {
  const { code = "" } = driverErrorOf(error);
  return /^(22|54)/.test(code);
}

/** True if a value contains the character U+0000, which PostgreSQL cannot store in a text. */
export function isUnstorableText(error: unknown): boolean {
  const { code = "" } = driverErrorOf(error);
  return code === "22021" || code === "22P05";
}

/** True if the database refused a connection because all are in use. */
export function isFull(error: unknown): boolean {
  return driverErrorOf(error).code === "53300";
}

/** True if a statement did not get its locks in time. */
export function isLockTimeout(error: unknown): boolean {
  return driverErrorOf(error).code === "55P03";
}

/** True if a statement was cancelled for its time limit. */
export function isTimeout(error: unknown): boolean {
  return driverErrorOf(error).code === "57014";
}

/**
 * Opens a pool of `poolSize` connections to a database whose schema is current.
 * @param sessionUrl the database itself if `url` is a pooler's, for statements that need a session
 */
export async function openDatabase(url: string, poolSize = POOL_CONNECTIONS, sessionUrl = url): Promise<DataSource> {
  const extra = sessionUrl === url ? BOUNDED_POOL : POOLED_POOL;
  return dataSource(url, poolSize, extra, MIGRATIONS, sessionUrl).initialize();
}

/** Runs `work` with the lock of the schema: one process at a time, the others wait. */
export async function withSchemaLock<T>(url: string, work: (query: Query) => Promise<T>): Promise<T> {
  const source = await dataSource(url, 1, PATIENT_POOL).initialize();
  const runner = source.createQueryRunner();
  try {
    // Polled: a concurrent index build would wait for a session that waits inside a statement.
    const lock = "SELECT pg_try_advisory_lock($1) AS taken";
    while (!(await rows<{ taken: boolean }>(runner, lock, [MIGRATION_LOCK]))[0]!.taken) await delay(LOCK_ASKED_MS);
    return await work((sql) => rows(runner, sql));
  } finally {
    await runner.release();
    await source.destroy();
  }
}

/** Repeats `work` if it did not get a table lock in time. */
async function withTableLocks(work: () => Promise<unknown>): Promise<void> {
  for (let left = TABLE_LOCK_TRIES; ; left -= 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (left === 0 || !(isLockTimeout(error) || isDeadlock(error))) throw error;
      await delay(TABLE_LOCK_AGAIN_MS);
    }
  }
}

/** Executes the pending migrations. For callers with the schema's lock. */
export async function bringSchema(url: string, migrations: readonly (typeof MIGRATIONS)[number][]): Promise<void> {
  const source = await dataSource(url, 1, PATIENT_POOL, migrations).initialize();
  source.subscribers.push(BRIEF_TABLE_LOCKS);
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

const OWN = MIGRATIONS.map(({ name }) => name);

/** Brings the schema to this release's version, and declares which releases run with it. For callers with the schema's lock. */
export async function bringCurrentSchema(url: string, query: Query): Promise<void> {
  await bringSchema(url, MIGRATIONS);
  await declareSchema(query, OWN);
}

/**
 * Brings the schema up to date. Safe from any number of processes at once.
 * @returns the names of the migrations that it ran
 * @throws StartError if the schema is of a newer release that this one cannot run with: nothing is changed then
 */
export const migrate = (url: string): Promise<string[]> =>
  withSchemaLock(url, async (query) => {
    const applied = await checkSchema(query, OWN);
    await bringCurrentSchema(url, query);
    return OWN.filter((name) => !applied.includes(name));
  });
