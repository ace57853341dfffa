/** Reads figures for monitoring: figures of the whole service, such as the number of running runs, and the queued runs of each app. */
import type { ProcessRole } from "../../config.js";
import { type Db, rows } from "../../data/database.js";
import { IS_RUNNING_SQL } from "../../data/run.js";
import type { QueueLimits } from "../records/queue-limits.js";
import type { Scheduler } from "../triggers/schedule.js";
import { APPS_WITH_RUN_COUNTER_MAX } from "../watch/measures.js";

export interface VitalSigns {
  /** Milliseconds for which the oldest due tick (scheduled time) has waited; 0 if no tick is due. */
  scheduleLagMs: number;
  scheduleCount: number;
  /** Number of schedules with a tick (scheduled time) that is due, or will be due within the next minute. */
  ticksDue: number;
  queued: number;
  running: number;
  /** Milliseconds for which the oldest queued run has waited. */
  oldestQueuedMs: number;
  /** Apps with queued runs. `oldestMs` is for how many milliseconds the oldest queued run has waited. */
  queues: readonly { appId: number; queued: number; oldestMs: number }[];
  /** Number of live processes by role. */
  instances: Record<string, number>;
  /** IDs of the newest apps, at most APPS_WITH_RUN_COUNTER_MAX, the newest first. */
  newestAppIds: readonly number[];
}

const SELECT_VITAL_COUNTS = `
  SELECT (SELECT count(*) FROM schedule) AS "scheduleCount",
         (SELECT count(*) FROM run WHERE ${IS_RUNNING_SQL}) AS running,
         (SELECT coalesce(json_object_agg(role, living), '{}') FROM (
            SELECT role, count(*) AS living FROM instance, unnest(roles) AS role
             WHERE lease_until >= now() GROUP BY role) AS by_role) AS instances,
         (SELECT coalesce(json_agg(id), '[]') FROM (
            SELECT id FROM app ORDER BY id DESC LIMIT ${APPS_WITH_RUN_COUNTER_MAX}) AS newest) AS "newestAppIds"`;

export type ReadVitals = () => Promise<VitalSigns>;

interface VitalsOptions {
  db: Db;
  schedule: Pick<Scheduler, "readLagMs" | "countDueTicks">;
  readDepths: QueueLimits["readDepths"];
}

export class Vitals {
  constructor(private readonly options: VitalsOptions) {}

  async read(): Promise<VitalSigns> {
    const { db, schedule, readDepths } = this.options;
    const [[counts], waitingByApp, scheduleLagMs, ticksDue] = await Promise.all([
      rows<Pick<VitalSigns, "scheduleCount" | "running" | "instances" | "newestAppIds">>(db, SELECT_VITAL_COUNTS),
      readDepths(),
      schedule.readLagMs(),
      schedule.countDueTicks(),
    ]);
    const queues = waitingByApp.map(({ appId, runs, oldestMs }) => ({ appId, queued: runs, oldestMs }));
    const queued = queues.reduce((sum, queue) => sum + queue.queued, 0);
    const oldestQueuedMs = Math.max(0, ...queues.map(({ oldestMs }) => oldestMs));
    return { ...counts!, queued, oldestQueuedMs, queues, scheduleLagMs, ticksDue };
  }

  async isRoleRunning(role: ProcessRole): Promise<boolean> {
    const sql = "SELECT FROM instance WHERE $1 = ANY (roles) AND lease_until >= now() LIMIT 1";
    return (await rows(this.options.db, sql, [role])).length > 0;
  }
}
