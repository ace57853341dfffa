/** What a start of the service works with, and what its parts hand to each other. Starts nothing. */
import type { Server } from "node:http";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { FrontDoor, Parts } from "../api/health.js";
import type { Config } from "../config.js";
import type { Notifications } from "../engine/notifications.js";
import type { Measures } from "../operations/watch/measures.js";
import type { Releases } from "./releases.js";

/** The time by which schedules fire. Unix time in milliseconds; `msUntil` is real time. */
export interface Clock {
  now(): number;
  msUntil(time: number): number;
}

/** What a start works with: the settings, where to leave what must be given back, and when to give up. */
export interface Plan {
  config: Config;
  clock: Clock;
  log: Logger;
  /** Called whenever the database has answered a heartbeat. */
  onDatabaseReached: () => void;
  measures: Measures;
  releases: Releases;
  parts: Parts;
  server: Server;
  door: FrontDoor;
  /** Aborts when the service is wanted no more, also while it starts. */
  unwanted: AbortSignal;
  /** Aborts when the grace of a stop is over. */
  impatience: AbortSignal;
  /** Tells that the service cannot go on. */
  fail: (reason: Error) => void;
}

export interface Opened {
  /** The database itself, past any pooler: for what needs a session of its own. */
  url: string;
  db: DataSource;
  notifications: Notifications;
}

/** What a runner tells of its work. */
export interface Work {
  places: () => { total: number; free: number; waiting: number };
  /** Whether it takes what it has a place for. */
  taking: () => boolean;
}

/** Every part that must be up, and is not yet. */
export function partsOf({ roles }: Config): Parts {
  const down = () => false;
  return {
    database: down,
    ...(roles.has("runner") && { browser: down, runner: down }),
    ...(roles.has("scheduler") && { scheduler: down }),
    ...(roles.has("api") && { api: down }),
  };
}
