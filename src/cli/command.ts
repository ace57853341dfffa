/** Helpers for all `npm run` commands: report a failure in one line with exit code 1, parse arguments strictly, and find the database. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { pino } from "pino";
import type { Config } from "../config.js";
import { type Db, migrateDatabase, openDatabase } from "../data/database.js";
import { findRunningEmbeddedPostgres, startEmbeddedPostgres } from "../engine/embedded-postgres.js";
import { createDatabaseNotifications } from "../engine/notifications.js";
import { formatFatalError, StartError } from "../errors.js";
import { CREDENTIAL_CHANNEL, Credentials } from "../operations/access/credentials.js";

export async function runCommand(command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    process.stderr.write(`${formatFatalError(error)}\n`);
    process.exitCode = 1;
  }
}

/** Parses the words and options of the command line. @throws StartError for an unknown or invalid option; its message ends with `usage` */
export function parseCommandLine<Options extends ParseArgsOptionsConfig>(
  options: Options,
  usage: string,
  args = process.argv.slice(2),
) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    const [reason] = (error as Error).message.split(/\.\s|\n/);
    throw new StartError(`${reason}. ${usage}`);
  }
}

/** The migrated database of the service, and the module that issues and revokes its credentials (tokens and sessions). */
export interface CommandDatabase {
  db: Db;
  credentials: Credentials;
}

const createWarningLog = () => pino({ level: "warn" }, pino.destination(2));

/**
 * Calls `work` with the URL of the service's database: DATABASE_DIRECT_URL, or DATABASE_URL, or the embedded database in DATA_DIR. If no
 * service has started the embedded database, starts it until `work` ends.
 */
export async function withDatabaseUrl<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  const { databaseUrl, databaseDirectUrl, dataDir } = config;
  const runningUrl = databaseDirectUrl ?? databaseUrl ?? (await findRunningEmbeddedPostgres(dataDir));
  const embedded = runningUrl === null ? await startEmbeddedPostgres({ dataDir, log: createWarningLog() }) : null;
  try {
    return await work(runningUrl ?? embedded!.url);
  } finally {
    await embedded?.stop();
  }
}

export function withMigratedDatabase<T>(config: Config, work: (database: CommandDatabase) => Promise<T>): Promise<T> {
  return withDatabaseUrl(config, async (url) => {
    await migrateDatabase(url);
    const db = await openDatabase(url, 2);
    const notifications = createDatabaseNotifications({ url, channels: [CREDENTIAL_CHANNEL], log: createWarningLog() });
    try {
      return await work({ db, credentials: new Credentials({ db, notifications }) });
    } finally {
      await db.destroy();
    }
  });
}
