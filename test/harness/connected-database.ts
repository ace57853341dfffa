/** A migrated database of the caller's own with a pool of connections to it. */
import type { DataSource } from "typeorm";
import { openDatabase } from "../../src/data/database.js";
import { freshDatabase } from "./postgres.js";

export interface ConnectedDatabase {
  db: DataSource;
  url: string;
  /** Closes the pool and drops the database. */
  stop(): Promise<void>;
}

export async function connectedDatabase(connections = 1): Promise<ConnectedDatabase> {
  const database = await freshDatabase();
  const db = await openDatabase(database.url, connections);
  return {
    db,
    url: database.url,
    async stop() {
      await db.destroy();
      await database.drop();
    },
  };
}
