/** This process among the others: its lease on the runs that it holds, and the burial of instances whose lease lapsed. */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Role } from "../../config.js";

const LEASE_MS = 12_000;
const HEARTBEAT_MS = 3_000;

export interface Instance {
  /** The fence: every write to a run that this process holds names it. */
  id: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * `onBeat` is called after each heartbeat, for what must be looked at from time to time; `onLapse` when this process can no longer
 * be sure that its lease holds: what it runs belongs to others now.
 */
export function createInstance(options: {
  db: DataSource;
  roles: ReadonlySet<Role>;
  /** The database serves this process alone: whoever else is in the table is dead. */
  alone: boolean;
  onBeat: () => Promise<void>;
  onLapse: () => void;
  log: Logger;
}): Instance {
  const { db, roles, alone, onBeat, onLapse, log } = options;
  const id = randomUUID();
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();
  let stopped = false;
  let lastRenewal = 0;

  async function renew(): Promise<void> {
    const asked = performance.now();
    await db.query(
      `INSERT INTO instance (id, roles, lease_until) VALUES ($1, $2, now() + $3::int * interval '1 millisecond')
       ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`,
      [id, [...roles], LEASE_MS],
    );
    lastRenewal = asked;
  }

  async function beat(): Promise<void> {
    try {
      await renew();
      await onBeat();
    } catch (error) {
      log.warn({ err: error }, "a heartbeat failed");
      if (performance.now() - lastRenewal > LEASE_MS) onLapse();
    }
    if (!stopped) timer = setTimeout(() => (beating = beat()), HEARTBEAT_MS);
  }

  return {
    id,
    async start() {
      if (alone) await db.query("DELETE FROM instance");
      await renew();
      beating = beat();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await beating;
      await db.query("DELETE FROM instance WHERE id = $1", [id]);
    },
  };
}
