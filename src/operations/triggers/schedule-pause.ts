/** Pauses and resumes all schedules of an app. During a pause, a skipped run is stored for each scheduled time. */
import { type Db, rows } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import { recordChange } from "../records/audit.js";
import { transactWithAppLock } from "../settings/app-lock.js";

/** A second pause keeps the time of the first pause. */
const SET_PAUSED = `
  UPDATE app SET schedules_paused_at = CASE WHEN $2 THEN coalesce(schedules_paused_at, now()) END
   WHERE id = $1 RETURNING schedules_paused_at AS "pausedAt"`;

export class SchedulePause {
  constructor(private readonly db: Db) {}

  /** Returns the time at which the app's schedules were paused; null if they are not paused. */
  async readPauseTime(appId: number): Promise<Date | null> {
    const sql = 'SELECT schedules_paused_at AS "pausedAt" FROM app WHERE id = $1';
    return (await rows<{ pausedAt: Date | null }>(this.db, sql, [appId]))[0]?.pausedAt ?? null;
  }

  /** Pauses or resumes the app's schedules. Queued runs are still executed. Returns the time of the pause; null after a resumption. */
  async setPaused(caller: Caller, appId: number, isPaused: boolean): Promise<Date | null> {
    return transactWithAppLock(this.db, appId, async (manager) => {
      const [app] = await rows<{ pausedAt: Date | null }>(manager, SET_PAUSED, [appId, isPaused]);
      const type = isPaused ? "app.schedules.pause" : "app.schedules.resume";
      await recordChange(manager, caller, { appId, type, data: {} });
      return app?.pausedAt ?? null;
    });
  }
}
