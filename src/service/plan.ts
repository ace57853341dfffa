/** Types for the start of the service: its inputs, and the objects that its components share. */
import type { Server } from "node:http";
import type { Logger } from "pino";
import type { HttpEntryPoint, ReadinessChecks } from "../api/health.js";
import type { Config } from "../config.js";
import type { Db } from "../data/database.js";
import type { DatabaseNotifications } from "../engine/notifications.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";
import type { ResourceReleaseStack } from "./releases.js";

/**
 * Clock of the schedules. `now` returns the Unix time in milliseconds. `msUntil` returns the real milliseconds until `time`, because a
 * test's clock can run at another speed.
 */
export interface Clock {
  now(): number;
  msUntil(time: number): number;
}

/** Inputs of a start: the configuration, the resources to release at the stop, and the signals that end the service. */
export interface ServiceStartContext {
  config: Config;
  clock: Clock;
  log: Logger;
  /** Called after each renewal of this process's lease, which shows that the database responds. */
  onDatabaseReached: () => void;
  measures: ServiceMetrics;
  releases: ResourceReleaseStack;
  readinessChecks: ReadinessChecks;
  server: Server;
  httpEntryPoint: HttpEntryPoint;
  stopRequested: AbortSignal;
  /** Aborts SHUTDOWN_GRACE_MS after the start of a stop, or at once if the stop must not wait for running work. */
  gracePeriodEnded: AbortSignal;
  /** Reports a failure after which the service can no longer work. The caller of `startService` then stops the service. */
  reportFatalFailure: (reason: Error) => void;
}

export interface DatabaseConnections {
  /** URL of the database itself, not of a connection pooler, because some statements need a session. */
  url: string;
  db: Db;
  notifications: DatabaseNotifications;
}

export interface RunnerState {
  countSlots: () => { total: number; free: number; waiting: number };
  /** False if queued runs have waited too long although this process has free slots. The process is then not ready. */
  isClaimingRuns: () => boolean;
}

/** Returns a readiness check for each component of this process (ROLES). A check returns false until its component replaces it. */
export function createInitialReadinessChecks({ roles }: Config): ReadinessChecks {
  const reportNotReady = () => false;
  return {
    database: reportNotReady,
    ...(roles.has("runner") && { browser: reportNotReady, runner: reportNotReady }),
    ...(roles.has("scheduler") && { scheduler: reportNotReady }),
    ...(roles.has("api") && { api: reportNotReady }),
  };
}
