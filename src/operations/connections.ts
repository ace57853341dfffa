/**
 * Computes the maximum number of database connections of a process from its roles. Read this file to set PostgreSQL's
 * `max_connections`.
 */
import type { Config } from "../config.js";
import { POOL_CONNECTIONS, STATEMENT_CONNECTIONS } from "../data/database.js";
import { READ_CONNECTIONS } from "./data-sources/read-pool.js";

/** Each process has one connection that receives notifications. */
const NOTIFICATION_CONNECTIONS = 1;
/** One connection builds the indexes of data sources. */
const UPKEEP_CONNECTIONS = 1;

/** Returns the maximum number of connections of one process with these roles. */
export function connectionsOf({ roles }: Pick<Config, "roles">): number {
  return (
    POOL_CONNECTIONS +
    STATEMENT_CONNECTIONS +
    NOTIFICATION_CONNECTIONS +
    READ_CONNECTIONS +
    (roles.has("scheduler") ? UPKEEP_CONNECTIONS : 0)
  );
}

export interface ConnectionFacts {
  /** Maximum number of connections that this database user can open. Other users share the server's limit. */
  most: number;
  open: number;
}

/**
 * Selects the maximum and the current number of connections. Of other users' sessions, only the database is readable.
 */
export const CONNECTION_FACTS = `
  SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
               (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
               (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS "most",
         (SELECT count(*)::int FROM pg_stat_activity WHERE datid IS NOT NULL) AS "open"`;

/** Returns the advice for a database without a free connection. */
export const tooFewConnections = (needed: number): string =>
  `PostgreSQL has no connection left: this process needs up to ${needed}. Raise max_connections, or run fewer processes (docs/operate/several-machines.md)`;
