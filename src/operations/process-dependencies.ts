/** Type of everything on which the operations of a process depend, such as configuration, database, notifications and browsers. */
import type { Logger } from "pino";
import type { Config } from "../config.js";
import type { Db } from "../data/database.js";
import type { Browsers } from "../engine/browser/browsers.js";
import type { DiskSpaceMonitor } from "../engine/disk-space.js";
import type { DatabaseNotifications } from "../engine/notifications.js";
import type { ServiceMetrics } from "./watch/measures.js";
import type { RequestTracing } from "./watch/tracing.js";

export interface ProcessDependencies {
  config: Config;
  db: Db;
  /** URL of the database, for modules that open connections of their own. */
  databaseUrl: string;
  notifications: DatabaseNotifications;
  /** Browsers of this process; null if this process does not have the role runner. */
  browsers: Browsers | null;
  diskSpace: DiskSpaceMonitor;
  measures: ServiceMetrics;
  tracing: RequestTracing;
  /** URL at which people and browsers reach the service. */
  baseUrl: string;
  /** URL at which code in runs of this process reaches the service. */
  apiUrl: string;
  /** True if the service uses its embedded PostgreSQL, so that no other process uses the database. */
  isOnlyProcess: boolean;
  /** Returns the current Unix time in milliseconds, for schedules. */
  now: () => number;
  log: Logger;
  /** Called whenever the database has answered a heartbeat. */
  onDatabaseReached: () => void;
}
