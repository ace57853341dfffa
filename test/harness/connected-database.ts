/** Creates a migrated database for a test, with connections to it. */
import { Client } from "pg";
import { type Db, openDatabase } from "../../src/data/database.js";
import { freshDatabase } from "./postgres.js";

export interface ConnectedDatabase {
  db: Db;
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

/**
 * Deletes all rows of the tables, in this order. Then restarts all sequences of the database, also those of other tables, at 1. TRUNCATE
 * would take longer, because it creates a file for each table and index.
 */
export async function emptyTables(db: Db, tables: readonly string[]): Promise<void> {
  for (const table of tables) await db.query(`DELETE FROM ${table}`);
  await db.query(
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences WHERE last_value IS NOT NULL",
  );
}

export interface ConnectedClient {
  client: Client;
  url: string;
  /** Closes the connection and drops the database. */
  stop(): Promise<void>;
}

export async function connectedClient(): Promise<ConnectedClient> {
  const database = await freshDatabase();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  return {
    client,
    url: database.url,
    async stop() {
      await client.end();
      await database.drop();
    },
  };
}
