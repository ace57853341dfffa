/** Type of the dependencies of a process's operations: configuration, database, notifications, browsers. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Config } from "../config.js";
import type { Browsers } from "../engine/browser/browsers.js";
import type { DiskSpace } from "../engine/disk-space.js";
import type { Notifications } from "../engine/notifications.js";
import type { ServiceMeasures } from "./watch/measures.js";
import type { RequestTracing } from "./watch/tracing.js";

export interface Surroundings {
  config: Config;
  db: DataSource;
  /** URL of the database, for modules that open their own connections. */
  databaseUrl: string;
  notifications: Notifications;
  /** Browsers of this process; null if it is not a runner. */
  browsers: Browsers | null;
  diskSpace: DiskSpace;
  measures: ServiceMeasures;
  tracing: RequestTracing;
  /** Address of the service for people and browsers. */
  baseUrl: string;
  /** Address at which runs of this process reach the service. */
  apiUrl: string;
  /** True if no other process shares the database. */
  isOnlyProcess: boolean;
  /** Unix time in milliseconds for schedules. */
  now: () => number;
  log: Logger;
  /** Called whenever the database has answered a heartbeat. */
  onDatabaseReached: () => void;
}
