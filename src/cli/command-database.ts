/** The database of one command: DATABASE_URL, or the embedded one, of the service that runs or started for the command. Knows no command. */
import type { DataSource } from "typeorm";
import type { Config } from "../config.js";
import { migrate, openDatabase } from "../data/database.js";
import { attachEmbeddedPostgres, startEmbeddedPostgres } from "../engine/embedded-postgres.js";
import { createLog } from "../engine/log.js";

/** Commands run one statement after the other; one more connection for what waits on a lock meanwhile. */
const POOL_SIZE = 2;

async function locate({ databaseUrl, dataDir }: Config): Promise<{ url: string; stop?: () => Promise<void> }> {
  const url = databaseUrl ?? (await attachEmbeddedPostgres(dataDir));
  return url ? { url } : startEmbeddedPostgres({ dataDir, log: createLog("warn", process.stderr) });
}

/** Calls `act` with a pool on the database, its schema current, and leaves everything as it was found. */
export async function withCommandDatabase<T>(config: Config, act: (db: DataSource) => Promise<T>): Promise<T> {
  const { url, stop } = await locate(config);
  try {
    await migrate(url);
    const db = await openDatabase(url, POOL_SIZE);
    return await act(db).finally(() => db.destroy());
  } finally {
    await stop?.();
  }
}
