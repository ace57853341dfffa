/** The whole service in numbers, for those who watch over it; of single apps nothing but what waits of them. */
import type { DataSource } from "typeorm";
import type { Role } from "../../config.js";
import { rows } from "../../data/database.js";

export interface Vitals {
  /** How long the oldest due tick has waited to be claimed; 0 when none waits. */
  scheduleLagMs: number;
  schedules: number;
  queued: number;
  running: number;
  /** How long the oldest queued run has waited. */
  oldestQueuedMs: number;
  /** The apps that have runs waiting: how many, and how long the oldest has waited. */
  queues: readonly { appId: number; queued: number; oldestMs: number }[];
  /** Living processes by role. */
  instances: Record<string, number>;
}

const COUNTS = `
  SELECT (SELECT count(*) FROM schedule) AS schedules,
         (SELECT count(*) FROM run WHERE state = 'running') AS running,
         (SELECT coalesce(json_object_agg(role, living), '{}') FROM (
            SELECT role, count(*) AS living FROM instance, unnest(roles) AS role
             WHERE lease_until >= now() GROUP BY role) AS by_role) AS instances`;

/* App by app along the index of what is queued: of each app the number, and the first by its id, which is the oldest but for those put back. */
const QUEUES = `
  WITH RECURSIVE waiting (app_id) AS (
    (SELECT app_id FROM run WHERE state = 'queued' ORDER BY app_id LIMIT 1)
    UNION ALL
    SELECT (SELECT run.app_id FROM run WHERE state = 'queued' AND run.app_id > waiting.app_id ORDER BY run.app_id LIMIT 1)
      FROM waiting WHERE waiting.app_id IS NOT NULL)
  SELECT app_id AS "appId", count.queued,
         extract(epoch FROM greatest(now() - first.queued_at, interval '0'))::float8 * 1000 AS "oldestMs"
    FROM waiting
    CROSS JOIN LATERAL (SELECT count(*) AS queued FROM run WHERE state = 'queued' AND run.app_id = waiting.app_id) AS count
    CROSS JOIN LATERAL (SELECT queued_at FROM run WHERE state = 'queued' AND run.app_id = waiting.app_id
                         ORDER BY id LIMIT 1) AS first`;

export type ReadVitals = () => Promise<Vitals>;

export function createVitals({ db, lag }: { db: DataSource; lag: () => Promise<number> }) {
  async function read(): Promise<Vitals> {
    const [[counts], queues, scheduleLagMs] = await Promise.all([
      rows<Pick<Vitals, "schedules" | "running" | "instances">>(db, COUNTS),
      rows<Vitals["queues"][number]>(db, QUEUES),
      lag(),
    ]);
    const queued = queues.reduce((sum, one) => sum + one.queued, 0);
    const oldestQueuedMs = Math.max(0, ...queues.map(({ oldestMs }) => oldestMs));
    return { ...counts!, queued, oldestQueuedMs, queues, scheduleLagMs };
  }

  return {
    read,
    /** Whether a process of that role lives. */
    async living(role: Role): Promise<boolean> {
      const sql = "SELECT FROM instance WHERE $1 = ANY (roles) AND lease_until >= now() LIMIT 1";
      return (await rows(db, sql, [role])).length > 0;
    },
  };
}
