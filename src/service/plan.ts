/** Types of the start: its inputs, and what the parts of the service pass to each other. */
import type { Server } from "node:http";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { FrontDoor, ServiceParts } from "../api/health.js";
import type { Config } from "../config.js";
import type { Notifications } from "../engine/notifications.js";
import type { ServiceMeasures } from "../operations/watch/measures.js";
import type { ReleaseStack } from "./releases.js";

/** Clock of the schedules, in Unix time in milliseconds. `msUntil` returns real milliseconds, which tests need. */
export interface Clock {
  now(): number;
  msUntil(time: number): number;
}

/** Inputs of a start: the configuration, the resources to release when the service stops, and the signals that end it. */
export interface Plan {
  config: Config;
  clock: Clock;
  log: Logger;
  /** Call it when the database has answered a heartbeat. */
  onDatabaseReached: () => void;
  measures: ServiceMeasures;
  releases: ReleaseStack;
  parts: ServiceParts;
  server: Server;
  door: FrontDoor;
  /** Aborts when the service must stop, even during the start. */
  unwanted: AbortSignal;
  /** Aborts when the grace period of a stop is over. */
  impatience: AbortSignal;
  /** Ends the service, because it can no longer work. */
  fail: (reason: Error) => void;
}

export interface DatabaseConnections {
  /** URL of the database without the pooler, for statements that need a session. */
  url: string;
  db: DataSource;
  notifications: Notifications;
}

/** State of a runner. */
export interface RunnerState {
  places: () => { total: number; free: number; waiting: number };
  /** Returns false if runs wait for long although the process has free slots, which is a fault of the process. */
  taking: () => boolean;
}

/** Names of required parts that are not ready yet. */
export function partsOf({ roles }: Config): ServiceParts {
  const down = () => false;
  return {
    database: down,
    ...(roles.has("runner") && { browser: down, runner: down }),
    ...(roles.has("scheduler") && { scheduler: down }),
    ...(roles.has("api") && { api: down }),
  };
}
