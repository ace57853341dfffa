/** Starts debounced runs when their debounce time is over. Also starts due checks of the setting `concurrency`. */
import { type Db, rows } from "../../data/database.js";
import { isInSourceStateSql } from "../../data/run.js";
import { QUEUED_RUN_CHANNEL } from "../records/queue-limits.js";
import type { ConcurrencyLimiter } from "./concurrency-limiter.js";

const RUNS_PER_STATEMENT_MAX = 100;

/** Skips locked rows: another transaction is cancelling these runs or replacing their payloads. */
const RELEASE_DUE_RUNS = `
  WITH due AS (
    SELECT debounced.run_id, run.action_id, action.concurrency, svc_run_payload(run.payload, run.event_id) AS payload
      FROM debounced_run AS debounced JOIN run ON run.id = debounced.run_id LEFT JOIN action ON action.id = run.action_id
     WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT ${RUNS_PER_STATEMENT_MAX} FOR UPDATE OF debounced, run SKIP LOCKED),
  quiet AS (DELETE FROM debounced_run USING due WHERE debounced_run.run_id = due.run_id),
  released AS (
    UPDATE run SET waits_for = CASE WHEN concurrency IS NOT NULL THEN 'concurrency' END,
                   ready_at = CASE WHEN concurrency IS NULL THEN now() END
      FROM due WHERE run.id = due.run_id AND run.${isInSourceStateSql("claim")} AND run.waits_for = 'debounce'
    RETURNING run.id, run.app_id, run.action_id, due.payload, concurrency)
  SELECT count(*) AS "releasedCount", count(pg_notify('${QUEUED_RUN_CHANNEL}', app_id::text)) FILTER (WHERE concurrency IS NULL),
         count(svc_count_run(id, action_id, payload, concurrency)) FILTER (WHERE concurrency IS NOT NULL)
    FROM released`;

const SELECT_NEXT_DUE_TIME = `
  SELECT least((SELECT min(due_at) FROM debounced_run), (SELECT min(at) FROM concurrency_due)) AS at, clock_timestamp() AS now`;

export class Debouncer {
  constructor(
    private readonly db: Db,
    private readonly limiter: ConcurrencyLimiter,
  ) {}

  /** Releases due runs and checks due concurrency keys. Returns the next due time as Unix time in milliseconds, or null. */
  readonly releaseDueRuns = async (): Promise<number | null> => {
    for (;;) {
      const [released] = await rows<{ releasedCount: number }>(this.db, RELEASE_DUE_RUNS);
      const keys = await this.limiter.checkDueKeys();
      if (released!.releasedCount < RUNS_PER_STATEMENT_MAX && keys === 0) break;
    }
    const [next] = await rows<{ at: Date | null; now: Date }>(this.db, SELECT_NEXT_DUE_TIME);
    return next!.at && Date.now() + Math.max(0, next!.at.getTime() - next!.now.getTime());
  };
}
