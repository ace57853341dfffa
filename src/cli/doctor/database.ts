/** Doctor's checks of the database: connection, version, rights, schema, clock, keys, and the service's processes that use it. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import type { Config, ProcessRole } from "../../config.js";
import { isConnectionLimitReached } from "../../data/database.js";
import { MIGRATIONS } from "../../data/migrations.js";
import { findSchemaIncompatibility, readSchemaState } from "../../data/schema-guard.js";
import { WRITE_TEMPORARY_FILES_SQL } from "../../data/spill.js";
import { createBucketIdentity } from "../../engine/blob-store/blob.js";
import { getBlobStoreIdPath } from "../../engine/blob-store/folder.js";
import { computeKeyFingerprint } from "../../engine/cipher.js";
import { findRunningEmbeddedPostgres } from "../../engine/embedded-postgres.js";
import { readKeyFile } from "../../engine/key-ring.js";
import {
  computeMaxConnections,
  createTooFewConnectionsMessage,
  type DatabaseConnectionCounts,
  SELECT_OPEN_DATABASE_CONNECTIONS,
} from "../../operations/connections.js";
import { getSettingsKeyFilePath } from "../../operations/settings/data-keys.js";
import { createClient, isDiskFull } from "../../postgres.js";
import { createPassedDiagnostic, createProblemDiagnostic, type Diagnostic } from "./diagnostic.js";

const POSTGRES_VERSION_MIN = 140_000;
const STATEMENT_TIMEOUT_MS = 5_000;
const CLOCK_SKEW_MAX_MS = 2_000;
const SCHEDULE_LAG_MAX_SECONDS = 60;

const SELECT_DATABASE_FACTS = `
  SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS "versionName",
         has_schema_privilege('public', 'CREATE') AND has_database_privilege(current_database(), 'CREATE') AS "mayCreate",
         current_setting('transaction_read_only') = 'on' AS "isReadOnly", pg_is_in_recovery() AS "isStandby",
         extract(epoch FROM clock_timestamp()) * 1000 AS "clockMs", to_regclass('migration') IS NOT NULL AS "isMigrated"`;

const SELECT_PROCESS_FACTS = `
  SELECT (SELECT count(*)::int FROM instance WHERE roles <> '{}' AND lease_until >= now()) AS "processCount",
         (SELECT count(*)::int FROM instance WHERE lease_until >= now() AND 'scheduler' = ANY (roles)) AS schedulers,
         (SELECT coalesce(extract(epoch FROM now() - min(next_tick)), 0)::float8 FROM schedule) AS "lagSeconds"`;

interface DatabaseFacts {
  version: number;
  versionName: string;
  mayCreate: boolean;
  isReadOnly: boolean;
  isStandby: boolean;
  clockMs: string;
  isMigrated: boolean;
}

function checkServer({ version, versionName, mayCreate, isReadOnly, isStandby }: DatabaseFacts): Diagnostic[] {
  const serverDiagnostic =
    version >= POSTGRES_VERSION_MIN
      ? createPassedDiagnostic("database", `PostgreSQL ${versionName} responds`)
      : createProblemDiagnostic("database", `PostgreSQL ${versionName}`, "use PostgreSQL 14 or later");
  if (isStandby || isReadOnly)
    return [
      serverDiagnostic,
      createProblemDiagnostic("rights", "the database is read-only", "set DATABASE_URL to the primary server"),
    ];
  if (mayCreate)
    return [serverDiagnostic, createPassedDiagnostic("rights", "the user may create and change tables and schemas")];
  const advice =
    "GRANT CREATE ON DATABASE and ON SCHEMA public to the user of DATABASE_URL: migrations and restores need it";
  return [serverDiagnostic, createProblemDiagnostic("rights", "the user may not create tables and schemas", advice)];
}

function checkClock({ clockMs }: DatabaseFacts, queriedAt: number, respondedAt: number): Diagnostic {
  const skew = Math.max(queriedAt - Number(clockMs), Number(clockMs) - respondedAt, 0);
  const text = `the clocks of this machine and of the database differ by at least ${Math.round(skew)} ms`;
  if (skew <= CLOCK_SKEW_MAX_MS) return createPassedDiagnostic("clock", text);
  return createProblemDiagnostic(
    "clock",
    text,
    "run a time service on both machines: schedules use the database's clock, certificates and tokens use this machine's clock",
  );
}

/**
 * Makes PostgreSQL write to its disk, to find out if the disk is full. The disk may be on another machine, so its free space is unknown
 * here.
 */
async function checkDisk(client: Client): Promise<Diagnostic> {
  try {
    await client.query("BEGIN");
    for (const statement of WRITE_TEMPORARY_FILES_SQL) await client.query(statement);
    return createPassedDiagnostic("database disk", "can be written");
  } catch (error) {
    if (!isDiskFull()) throw error;
    return createProblemDiagnostic(
      "database disk",
      `is full (${(error as Error).message})`,
      "free space on the disk of PostgreSQL",
    );
  } finally {
    await client.query("ROLLBACK");
  }
}

async function checkSchema(client: Client): Promise<Diagnostic> {
  const { appliedMigrations, declaration } = await readSchemaState(async (sql) => (await client.query(sql)).rows);
  const migrationNames = MIGRATIONS.map(({ name }) => name);
  const fault = findSchemaIncompatibility(migrationNames, appliedMigrations, declaration);
  if (fault !== null)
    return createProblemDiagnostic(
      "schema",
      fault,
      "start the newer release, or restore a backup that this release can read",
    );
  const missingCount = migrationNames.filter((name) => !appliedMigrations.includes(name)).length;
  const newerCount = appliedMigrations.filter((name) => !migrationNames.includes(name)).length;
  if (newerCount > 0)
    return createPassedDiagnostic("schema", `belongs to the next release, and this release can run with it`);
  return createPassedDiagnostic(
    "schema",
    missingCount === 0 ? "is the schema of this release" : `${missingCount} migrations run at the next start`,
  );
}

async function checkKeys(client: Client, { settingsKeys, dataDir }: Config): Promise<Diagnostic> {
  const path = getSettingsKeyFilePath(dataDir);
  const keys = settingsKeys ?? (existsSync(path) ? readKeyFile(path) : []);
  const availableFingerprints = new Set(keys.map((key) => computeKeyFingerprint(key)));
  const { rows } = await client.query<{ fingerprint: string }>("SELECT fingerprint FROM settings_key");
  const [usedKey] = rows;
  if (!usedKey) return createPassedDiagnostic("keys", "no setting is encrypted yet");
  if (availableFingerprints.has(usedKey.fingerprint))
    return createPassedDiagnostic("keys", "can decrypt the settings in the database");
  return createProblemDiagnostic(
    "keys",
    "cannot decrypt the settings in the database, because another key encrypted them",
    `set SETTINGS_KEY to the key that encrypted them, or copy the file ${path} from the machine where the service ran before`,
  );
}

async function checkProcesses(client: Client): Promise<Diagnostic[]> {
  const { rows } = await client.query<{ processCount: number; schedulers: number; lagSeconds: number }>(
    SELECT_PROCESS_FACTS,
  );
  const { processCount, schedulers, lagSeconds } = rows[0]!;
  const processDiagnostic = createPassedDiagnostic(
    "processes",
    `${processCount} processes of the service are running, ${schedulers} of them as schedulers`,
  );
  if (processCount === 0 || lagSeconds < SCHEDULE_LAG_MAX_SECONDS) return [processDiagnostic];
  return [
    processDiagnostic,
    createProblemDiagnostic(
      "schedules",
      `a scheduled run has been due for ${Math.round(lagSeconds)} s, but no scheduler has processed it`,
      "start a process whose ROLES contain scheduler",
    ),
  ];
}

/** Checks that the media store of this process (DATA_DIR/media, or the bucket of MEDIA_URL) is the one that the database names. */
async function checkMediaStore(client: Client, { roles, mediaBucket, dataDir }: Config): Promise<Diagnostic[]> {
  if (!roles.has("api") && !roles.has("scheduler")) return [];
  const { rows } = await client.query<{ space: string; identity: string | null }>(
    // Reads `identity` through JSON, because a database that is not migrated yet does not have this column.
    "SELECT space, to_jsonb(media_store)->>'identity' AS identity FROM media_store",
  );
  const { space, identity } = rows[0]!;
  const folder = join(dataDir, "media");
  if (identity === null) return [createPassedDiagnostic("media store", "the service records it at its first start")];
  const path = getBlobStoreIdPath(folder, space);
  const storedIdentity = existsSync(path) ? readFileSync(path, "utf8").trim() : null;
  const isSameStore =
    mediaBucket === null ? storedIdentity === identity : identity === createBucketIdentity(mediaBucket);
  const storeName = mediaBucket === null ? folder : `the bucket ${mediaBucket.bucket}`;
  if (isSameStore) return [createPassedDiagnostic("media store", `${storeName} has the files of this database`)];
  const problem = `${storeName} does not contain the files of this database`;
  const remedy = "give every process the same DATA_DIR/media on a shared volume, or the same bucket in MEDIA_URL";
  return [createProblemDiagnostic("media store", problem, remedy)];
}

/** Reports proxies whose header X-Forwarded-For a running process ignores, because TRUST_PROXY does not name them. */
async function checkProxy(client: Client): Promise<Diagnostic> {
  const { rows } = await client.query<{ proxy: string | null }>(
    // Reads `ignored_proxy` through JSON, because a database that is not migrated yet does not have this column.
    `SELECT DISTINCT to_jsonb(instance)->>'ignored_proxy' AS proxy FROM instance
      WHERE lease_until >= now() AND to_jsonb(instance)->>'ignored_proxy' IS NOT NULL ORDER BY 1 LIMIT 5`,
  );
  if (rows.length === 0) return createPassedDiagnostic("proxy", "no X-Forwarded-For from a private network is ignored");
  const proxies = rows.map(({ proxy }) => proxy).join(", ");
  return createProblemDiagnostic(
    "proxy",
    `requests from ${proxies} have an X-Forwarded-For that TRUST_PROXY does not trust: the rate limits by address count all visitors together`,
    "set TRUST_PROXY to the address of the proxy, or to the number of proxies before the service (docs/operate/proxy.md)",
  );
}

async function checkConnections(client: Client, config: Config): Promise<Diagnostic> {
  const [{ maxConnections }] = (await client.query<DatabaseConnectionCounts>(SELECT_OPEN_DATABASE_CONNECTIONS))
    .rows as [DatabaseConnectionCounts];
  const runningProcesses = await client.query<{ roles: ProcessRole[] }>(
    "SELECT roles FROM instance WHERE roles <> '{}' AND lease_until >= now()",
  );
  const connectionsPerProcess = runningProcesses.rows.map(({ roles }) =>
    computeMaxConnections({ roles: new Set(roles) }),
  );
  const neededConnections =
    connectionsPerProcess.length > 0
      ? connectionsPerProcess.reduce((sum, count) => sum + count)
      : computeMaxConnections(config);
  const subject =
    connectionsPerProcess.length > 0
      ? `the ${connectionsPerProcess.length} running processes need`
      : "a process with these ROLES needs";
  const text = `${subject} up to ${neededConnections} connections, and PostgreSQL allows ${maxConnections}`;
  if (maxConnections >= neededConnections) return createPassedDiagnostic("connections", text);
  return createProblemDiagnostic(
    "connections",
    text,
    "raise max_connections, or run fewer processes (docs/operate/several-machines.md)",
  );
}

const SELECT_USER_DATA_SOURCES = `
  SELECT source.app_id AS "appId", source.name,
         EXISTS (SELECT FROM audit_entry WHERE audit_entry.app_id = source.app_id AND type = 'dataSource.update'
                    AND data->>'by' = 'upgrade' AND (data->>'id')::int = source.id) AS "byUpgrade"
    FROM data_source AS source WHERE is_users ORDER BY 1, 2 LIMIT 20`;

/**
 * Selects data sources (tables of an app) that have a hashed column, such as a password. Omits those whose entries can sign in on pages.
 */
const SELECT_UNMARKED_HASHED_SOURCES = `
  SELECT app_id AS "appId", name FROM data_source WHERE hashed_columns <> '[]' AND NOT is_users ORDER BY 1, 2 LIMIT 20`;

const describeItem = ({ appId, name }: { appId: number; name: string }): string =>
  `${JSON.stringify(name)} of app ${appId}`;

/**
 * Lists the data sources whose entries can sign in on pages. Also lists those with a hashed column (such as a password) whose entries
 * cannot.
 */
async function checkAppUsers(client: Client): Promise<Diagnostic> {
  const { rows } = await client.query<{ appId: number; name: string; byUpgrade: boolean }>(SELECT_USER_DATA_SOURCES);
  const unmarkedSources = await client.query<{ appId: number; name: string }>(SELECT_UNMARKED_HASHED_SOURCES);
  const userSources = rows.map((source) => describeItem(source) + (source.byUpgrade ? " (marked by an upgrade)" : ""));
  const text =
    userSources.length === 0 ? "no data source contains app users (isUsers)" : `in ${userSources.join(", ")}`;
  if (unmarkedSources.rows.length === 0) return createPassedDiagnostic("app users", text);
  const unmarkedNames = unmarkedSources.rows.map(describeItem).join(", ");
  const predicate = unmarkedSources.rows.length === 1 ? "has a hashed column but is" : "have a hashed column but are";
  return createPassedDiagnostic(
    "app users",
    `${text}; ${unmarkedNames} ${predicate} not isUsers: these entries cannot sign in on pages until an editor sets isUsers`,
  );
}

async function hasColumn(client: Client, table: string, column: string): Promise<boolean> {
  const text = "SELECT FROM information_schema.columns WHERE table_name = $1 AND column_name = $2";
  return ((await client.query(text, [table, column])).rowCount ?? 0) > 0;
}

async function examineDatabase(client: Client, config: Config): Promise<Diagnostic[]> {
  const queriedAt = Date.now();
  const { rows } = await client.query<DatabaseFacts>(SELECT_DATABASE_FACTS);
  const facts = rows[0]!;
  const diagnostics = [...checkServer(facts), checkClock(facts, queriedAt, Date.now()), await checkDisk(client)];
  if (!facts.isMigrated)
    return [...diagnostics, createPassedDiagnostic("schema", "the service creates it at its first start")];
  const userDiagnostics = (await hasColumn(client, "data_source", "is_users")) ? [await checkAppUsers(client)] : [];
  return [
    ...diagnostics,
    await checkSchema(client),
    await checkKeys(client, config),
    await checkConnections(client, config),
    ...(await checkMediaStore(client, config)),
    await checkProxy(client),
    ...(await checkProcesses(client)),
    ...userDiagnostics,
  ];
}

/** Checks the database of DATABASE_DIRECT_URL or DATABASE_URL, or a running service's embedded database. Changes nothing in it. */
export async function checkDatabase(config: Config): Promise<Diagnostic[]> {
  const databaseUrl = config.databaseDirectUrl ?? config.databaseUrl;
  const url = databaseUrl ?? (await findRunningEmbeddedPostgres(config.dataDir));
  if (url === null)
    return [
      createPassedDiagnostic("database", "embedded: it starts with the service, and can only be checked while it runs"),
    ];
  const client = createClient(url, "svc-app-actions doctor");
  let isConnected = false;
  try {
    await client.connect();
    isConnected = true;
    await client.query(`SET statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
    return await examineDatabase(client, config);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (isConnectionLimitReached(error))
      return [
        createProblemDiagnostic("connections", message, createTooFewConnectionsMessage(computeMaxConnections(config))),
      ];
    if (isConnected)
      return [
        createProblemDiagnostic(
          "database",
          `a check failed (${message})`,
          "run the doctor again; if the check fails again, read the log of PostgreSQL",
        ),
      ];
    // The advice does not contain the database URL, because the URL contains a password.
    const advice =
      "check host, port, user, password and database name in DATABASE_URL, and that the server accepts connections from this machine";
    return [createProblemDiagnostic("database", `does not respond (${code ?? message})`, advice)];
  } finally {
    // Ignores errors of `end`: the checks are finished, and a failed connection cannot be closed.
    await client.end().catch(() => undefined);
  }
}
