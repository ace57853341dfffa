/** Opens the database when a process starts. Waits until the database responds. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Config } from "../config.js";
import {
  type Db,
  isConnectionLimitReached,
  isDatabaseUnavailable,
  migrateDatabase,
  openDatabase,
  rows,
} from "../data/database.js";
import { createDatabaseNotifications, type DatabaseNotifications } from "../engine/notifications.js";
import { StartError } from "../errors.js";
import { ALWAYS_SUBSCRIBED_CHANNELS, ON_DEMAND_CHANNELS } from "../operations/channels.js";
import {
  computeMaxConnections,
  createTooFewConnectionsMessage,
  type DatabaseConnectionCounts,
  SELECT_OPEN_DATABASE_CONNECTIONS,
} from "../operations/connections.js";
import { isPoolerUrl } from "../postgres.js";

const FIRST_RETRY_DELAY_MS = 500;
const RETRY_DELAY_MAX_MS = 10_000;
const LOG_INTERVAL_MS = 60_000;

/** Describes a database error for the operator, without the URL, which contains a password. */
export function describeDatabaseStartError(
  error: unknown,
  config: Pick<Config, "roles" | "runnerConcurrency">,
): string {
  if (isConnectionLimitReached(error)) return createTooFewConnectionsMessage(computeMaxConnections(config));
  const { message, code } = error as NodeJS.ErrnoException;
  return (message || code || String(error)).replaceAll("\n", " ");
}

/**
 * Repeats `work` with growing pauses while the database is unavailable. Logs the first failure, and then one line a minute.
 * @throws other errors of `work`, and the reason of `stopRequested` if it aborts
 */
export async function waitUntilDatabaseReachable<T>(
  work: () => Promise<T>,
  {
    log,
    stopRequested,
    describeError,
  }: { log: Logger; stopRequested: AbortSignal; describeError: (error: unknown) => string },
): Promise<T> {
  let lastLoggedAt = Number.NEGATIVE_INFINITY;
  for (let waitMs = FIRST_RETRY_DELAY_MS; ; waitMs = Math.min(2 * waitMs, RETRY_DELAY_MAX_MS)) {
    stopRequested.throwIfAborted();
    try {
      const result = await work();
      if (lastLoggedAt > 0) log.info("the database responds");
      return result;
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      if (performance.now() - lastLoggedAt >= LOG_INTERVAL_MS) {
        log.warn({ reason: describeError(error) }, "waiting for the database");
        lastLoggedAt = performance.now();
      }
      // If `stopRequested` aborts, the pause ends early. The loop then throws the reason.
      await delay(waitMs, undefined, { signal: stopRequested }).catch(() => undefined);
    }
  }
}

async function checkConnections(db: Db, config: Config, log: Logger): Promise<void> {
  const [facts] = await rows<DatabaseConnectionCounts>(db, SELECT_OPEN_DATABASE_CONNECTIONS);
  const { maxConnections: most, openConnections: open } = facts!;
  const needed = computeMaxConnections(config);
  const left = most - open;
  if (left < needed)
    log.warn(
      { needed, left, most },
      "PostgreSQL has too few connections left; raise max_connections, or run fewer processes",
    );
}

export interface OpenedDatabase {
  db: Db;
  notifications: DatabaseNotifications;
}

/**
 * Migrates the schema, opens the connections and starts to receive notifications. Waits while the database is unavailable.
 * @throws StartError with one line if the database cannot be used
 */
export async function openServiceDatabase(
  config: Config,
  url: string,
  { log, stopRequested }: { log: Logger; stopRequested: AbortSignal },
): Promise<OpenedDatabase> {
  const variableName = config.databaseDirectUrl ? "DATABASE_DIRECT_URL" : "DATABASE_URL";
  const databaseName = config.databaseUrl ? `the database of ${variableName}` : "the embedded database";
  const describeError = (error: unknown) => describeDatabaseStartError(error, config);

  async function open(): Promise<OpenedDatabase> {
    if (config.databaseUrl && (await isPoolerUrl(url))) {
      throw new StartError(
        `${variableName} points to a connection pooler; set DATABASE_DIRECT_URL to the URL of the database itself (docs/operate/containers.md)`,
      );
    }
    const startedAt = performance.now();
    const migrations = await migrateDatabase(url);
    if (migrations.length > 0) {
      const durationMs = Math.round(performance.now() - startedAt);
      log.info({ migrations: migrations.length, newest: migrations.at(-1), durationMs }, "the schema is migrated");
    }
    const db = await openDatabase(config.databaseUrl ?? url, undefined, url);
    const notifications = createDatabaseNotifications({
      url,
      channels: ALWAYS_SUBSCRIBED_CHANNELS,
      followedChannels: ON_DEMAND_CHANNELS,
      log,
    });
    try {
      await checkConnections(db, config, log);
      await notifications.start();
      return { db, notifications };
    } catch (error) {
      await db.destroy();
      throw error;
    }
  }

  return waitUntilDatabaseReachable(open, { log, stopRequested, describeError }).catch((error: Error) => {
    if (error instanceof StartError || stopRequested.aborted) throw error;
    throw new StartError(`${databaseName} could not be opened: ${describeError(error)}`, { cause: error });
  });
}
