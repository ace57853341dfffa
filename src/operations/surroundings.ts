/** Dependencies of a process's operations: the settings, its connections, its browsers. Only types. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Config } from "../config.js";
import type { Browsers } from "../engine/browser/browsers.js";
import type { DiskSpace } from "../engine/disk-room.js";
import type { Notifications } from "../engine/notifications.js";
import type { ServiceMeasures } from "./watch/measures.js";
import type { RequestTracing } from "./watch/tracing.js";

export interface Surroundings {
  config: Config;
  db: DataSource;
  /** URL of the database, for readers with their own connections. */
  databaseUrl: string;
  notifications: Notifications;
  /** null in a process that is not a runner. */
  browsers: Browsers | null;
  room: DiskSpace;
  measures: ServiceMeasures;
  tracing: RequestTracing;
  /** The service's address for people and browsers. */
  baseUrl: string;
  /** The service's address for the runs of this process. */
  apiUrl: string;
  /** True if no other process shares the database. */
  alone: boolean;
  /** Unix time in milliseconds for schedules. */
  now: () => number;
  log: Logger;
  /** Called whenever the database has answered a heartbeat. */
  onDatabaseReached: () => void;
}
