/** Types for the start of the service: its inputs, and the objects that its components pass to each other. */
import type { Server } from "node:http";
import type { Logger } from "pino";
import type { HttpEntryPoint, ReadinessChecks } from "../api/health.js";
import type { Config } from "../config.js";
import type { Db } from "../data/database.js";
import type { DatabaseNotifications } from "../engine/notifications.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";
import type { ResourceReleaseStack } from "./releases.js";

/**
 * Clock of the schedules. `now` returns the Unix time in milliseconds. `msUntil` returns the milliseconds of real time until `time`; a
 * test's clock can run at another speed.
 */
export interface Clock {
  now(): number;
  msUntil(time: number): number;
}

/** Inputs of a start: the configuration, the stack of resources to release at the stop, and the signals that end the service. */
export interface ServiceStartContext {
  config: Config;
  clock: Clock;
  log: Logger;
  /** Called when the database has accepted this process's heartbeat. */
  onDatabaseReached: () => void;
  measures: ServiceMetrics;
  releases: ResourceReleaseStack;
  readinessChecks: ReadinessChecks;
  server: Server;
  httpEntryPoint: HttpEntryPoint;
  /** Aborts when the service must stop, also during its start. */
  stopRequested: AbortSignal;
  /** Aborts when the grace period of a stop has ended. */
  gracePeriodEnded: AbortSignal;
  /** Stops the service for this reason, because it can no longer work. */
  stopAfterFailure: (reason: Error) => void;
}

export interface DatabaseConnections {
  /** URL of the database itself, not of a pooler, for statements that need a session. */
  url: string;
  db: Db;
  notifications: DatabaseNotifications;
}

export interface RunnerState {
  countSlots: () => { total: number; free: number; waiting: number };
  /**
   * False if queued runs have waited too long although this process has free slots. The service then counts this
   * process as faulty.
   */
  isClaimingRuns: () => boolean;
}

/**
 * Returns a readiness check for each component that ROLES requires. A check reports "not ready" until its component
 * starts.
 */
export function createReadinessChecks({ roles }: Config): ReadinessChecks {
  const down = () => false;
  return {
    database: down,
    ...(roles.has("runner") && { browser: down, runner: down }),
    ...(roles.has("scheduler") && { scheduler: down }),
    ...(roles.has("api") && { api: down }),
  };
}
