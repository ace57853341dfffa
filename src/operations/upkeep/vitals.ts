/** The whole service in numbers, for those who watch over it: sums over all apps, nothing of any one. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";

export interface Vitals {
  /** How long the oldest due tick has waited to be claimed; 0 when none waits. */
  scheduleLagMs: number;
  schedules: number;
  queued: number;
  running: number;
  /** How long the oldest queued run has waited. */
  oldestQueuedMs: number;
  /** Living processes by role. */
  instances: Record<string, number>;
}

const COUNTS = `
  SELECT (SELECT count(*) FROM schedule) AS schedules,
         (SELECT count(*) FROM run WHERE state = 'queued') AS queued,
         (SELECT count(*) FROM run WHERE state = 'running') AS running,
         (SELECT coalesce(extract(epoch FROM now() - min(queued_at)) * 1000, 0)::float8
            FROM run WHERE state = 'queued') AS "oldestQueuedMs",
         (SELECT coalesce(json_object_agg(role, living), '{}') FROM (
            SELECT role, count(*) AS living FROM instance, unnest(roles) AS role
             WHERE lease_until >= now() GROUP BY role) AS by_role) AS instances`;

export type ReadVitals = () => Promise<Vitals>;

export function createVitals({ db, lag }: { db: DataSource; lag: () => Promise<number> }): ReadVitals {
  return async () => {
    const [[counts], scheduleLagMs] = await Promise.all([rows<Omit<Vitals, "scheduleLagMs">>(db, COUNTS), lag()]);
    return { ...counts!, scheduleLagMs };
  };
}
