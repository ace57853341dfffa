/** This process's lease on the runs that it holds, and when it may end the runs of other processes. Read it for what happens in an outage. */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Role } from "../../config.js";
import { createDatabaseContact } from "./database-contact.js";
import { BROWSER_HOLDER } from "./ledger.js";

const LEASE_MS = 12_000;
const HEARTBEAT_MS = 3_000;
/** A failed heartbeat is repeated sooner: after an outage every process must renew before any other declares it dead. */
const RETRY_MS = 500;

export interface Instance {
  /** The fence: every write to a run that this process holds names it. */
  id: string;
  /** Requests come by a proxy whose `X-Forwarded-For` is not believed. Logged once, and noted in the database for `npm run doctor`. */
  reportIgnoredProxy(address: string): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Work of each heartbeat beside the renewal. `mayDeclareDead`: processes whose lease has lapsed are dead. */
export type OnBeat = (mayDeclareDead: boolean) => Promise<void>;

/**
 * A failed renewal ends no run: in an outage of the database no other process can take the runs. `onLateRenewal` is called after a
 * renewal that came later than the lease lasts: another process may have ended runs of this one.
 */
export function createInstance(options: {
  db: DataSource;
  roles: ReadonlySet<Role>;
  /** The database serves this process only: every other row in the table belongs to a dead process. */
  alone: boolean;
  onBeat: OnBeat;
  onLateRenewal: () => Promise<void>;
  onDatabaseReached: () => void;
  log: Logger;
}): Instance {
  const { db, roles, alone, onBeat, onLateRenewal, onDatabaseReached, log } = options;
  const id = randomUUID();
  const contact = createDatabaseContact(LEASE_MS);
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();
  /** Runs beside the heartbeats: a slow statement must not let the lease lapse. */
  let upkeep: Promise<void> | null = null;
  let stopped = false;
  let lastRenewal = 0;
  let isLate = false;
  let ignoredProxy: string | null = null;

  async function renew(): Promise<void> {
    const asked = performance.now();
    await db.query(
      `INSERT INTO instance (id, roles, lease_until, ignored_proxy)
       VALUES ($1, $2, now() + $3::int * interval '1 millisecond', $4)
       ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, ignored_proxy = excluded.ignored_proxy`,
      [id, [...roles], LEASE_MS, ignoredProxy],
    );
    if (lastRenewal > 0 && asked - lastRenewal > LEASE_MS) isLate = true;
    lastRenewal = asked;
    contact.reached();
    onDatabaseReached();
  }

  async function lookAfter(): Promise<void> {
    try {
      if (isLate) await onLateRenewal();
      isLate = false;
      await onBeat(alone || contact.isSteady());
    } catch (error) {
      log.warn({ err: error }, "the work of a heartbeat failed");
    } finally {
      upkeep = null;
    }
  }

  async function beat(): Promise<void> {
    let next = HEARTBEAT_MS;
    try {
      await renew();
      upkeep ??= lookAfter();
    } catch (error) {
      contact.lost();
      next = RETRY_MS;
      log.warn({ err: error }, "a heartbeat failed");
    }
    if (!stopped) {
      timer = setTimeout(() => {
        beating = beat();
      }, next);
    }
  }

  return {
    id,
    reportIgnoredProxy(address) {
      if (ignoredProxy !== null) return;
      ignoredProxy = address;
      log.warn(
        { proxy: address },
        "X-Forwarded-For of a proxy is ignored: limits by address take all of its visitors for one; set TRUST_PROXY",
      );
    },
    async start() {
      if (alone) await db.query("DELETE FROM instance WHERE id <> $1", [BROWSER_HOLDER]);
      await renew();
      beating = beat();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await beating;
      await upkeep;
      await db.query("DELETE FROM instance WHERE id = $1", [id]);
    },
  };
}
