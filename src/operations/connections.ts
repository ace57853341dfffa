/** Maximum database connections of a process, by its roles. Read it to set PostgreSQL's `max_connections`. */
import type { Config } from "../config.js";
import { POOL_CONNECTIONS, STATEMENT_CONNECTIONS } from "../data/database.js";
import { READ_CONNECTIONS } from "./data-sources/read-pool.js";

/** One listens for notifications, in each process. */
const NOTICE_CONNECTIONS = 1;
/** One builds the indexes of data sources. */
const UPKEEP_CONNECTIONS = 1;

/** Maximum connections of one process with these roles. */
export function connectionsOf({ roles }: Pick<Config, "roles">): number {
  return (
    POOL_CONNECTIONS +
    STATEMENT_CONNECTIONS +
    NOTICE_CONNECTIONS +
    READ_CONNECTIONS +
    (roles.has("scheduler") ? UPKEEP_CONNECTIONS : 0)
  );
}

export interface ConnectionFacts {
  /** Connections that this user can open, shared with all other users. */
  most: number;
  open: number;
}

/* Sessions of other users show little more than their database. */
export const CONNECTION_FACTS = `
  SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
               (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
               (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS "most",
         (SELECT count(*)::int FROM pg_stat_activity WHERE datid IS NOT NULL) AS "open"`;

/** The advice for a database that has no connection left. */
export const tooFewConnections = (needed: number): string =>
  `PostgreSQL has no connection left: this process needs up to ${needed}. Raise max_connections, or run fewer processes (docs/operate/several-machines.md)`;
