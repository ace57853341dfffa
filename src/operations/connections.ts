/**
 * Computes how many PostgreSQL connections a process of the service opens at most, from its roles. Read this file to
 * choose the `max_connections` of the PostgreSQL server.
 */
import type { Config } from "../config.js";
import { DATABASE_POOL_CONNECTIONS, PREPARED_STATEMENT_CONNECTIONS, RESERVED_CONNECTIONS } from "../data/database.js";
import { READ_POOL_CONNECTIONS } from "./data-sources/read-pool.js";

/** Each process keeps one connection open to receive PostgreSQL notifications. */
const NOTIFICATION_CONNECTIONS = 1;
/** A process with the role `scheduler` keeps one connection open to build the indexes of data sources. */
const INDEX_BUILD_CONNECTIONS = 1;

export function computeMaxConnections({ roles }: Pick<Config, "roles">): number {
  return (
    DATABASE_POOL_CONNECTIONS +
    PREPARED_STATEMENT_CONNECTIONS +
    RESERVED_CONNECTIONS +
    NOTIFICATION_CONNECTIONS +
    READ_POOL_CONNECTIONS +
    (roles.has("scheduler") ? INDEX_BUILD_CONNECTIONS : 0)
  );
}

export interface DatabaseConnectionCounts {
  /** Lowest of three connection limits: of the server (without connections for superusers), of this database user and of this database. */
  maxConnections: number;
  /** Number of open connections to the PostgreSQL server, including those of other users and databases. */
  openConnections: number;
}

/**
 * Selects the `DatabaseConnectionCounts`. A session with a `datid` is a connection to a database. The statement uses this column because
 * PostgreSQL hides most others for sessions of other users.
 */
export const SELECT_OPEN_DATABASE_CONNECTIONS = `
  SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
               (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
               (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS "maxConnections",
         (SELECT count(*)::int FROM pg_stat_activity WHERE datid IS NOT NULL) AS "openConnections"`;

/**
 * Returns the error message for a PostgreSQL server that has no free connection.
 * @param needed maximum number of connections that this process opens
 */
export const createTooFewConnectionsMessage = (needed: number): string =>
  `PostgreSQL has no connection left: this process needs up to ${needed}. Raise max_connections, or run fewer processes (docs/operate/several-machines.md)`;
