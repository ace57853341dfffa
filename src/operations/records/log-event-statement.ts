/**
 * Stores log events, and queues runs of the actions that they trigger, in one SQL statement for any number of events of one or several
 * apps.
 */
import { NEW_RUN_STATE_SQL } from "../../data/run.js";
import { RUN_CHAIN_DEPTH_MAX, RUNS_PER_CHAIN_AND_MINUTE } from "../../limits.js";
import { QUEUE_FULL_REASON, QUEUED_RUN_CHANNEL, type QueueLimits } from "./queue-limits.js";

/**
 * Maximum number of skipped runs per app and reason in one statement. The last one also stands for all further runs: its `tickCount` counts
 * them.
 */
const SKIPPED_RUNS_PER_REASON = 100;

export const HALTED_RUN_REASONS = {
  depth: `recursion: more than ${RUN_CHAIN_DEPTH_MAX} runs deep`,
  rate: `recursion: more than ${RUNS_PER_CHAIN_AND_MINUTE} runs of one chain in a minute`,
} as const;

/** A run that was not started, because a chain of runs would become too long. */
export interface HaltedRun {
  id: number;
  actionId: number;
  reason: string;
}

/** A log event to store, as input of the SQL statement. */
export interface NewLogEvent {
  appId: number;
  type: string;
  /** Data as JSON text without the closing brace, which the statement adds, after the key `_userEmail` if needed. */
  head: string;
  /** Text between `head` and `_userEmail`: a comma, or "" if the data has no keys. Null: the statement adds no `_userEmail`. */
  separator: string | null;
  /** `_userEmail` of the request as JSON text, which is stored if the service does not know the user's address. */
  claimed: string | null;
  userId: number | null;
  dataSourceId: number | null;
  dataSourceEntryId: number | null;
  appNotificationId: number | null;
  sessionId: number | null;
  /** Identifies the event in the result rows of the statement. */
  requestId: string;
  /** ID of the run that emitted the event; null if no run did. */
  runId: number | null;
}

export interface StoredLogEvent {
  requestId: string;
  id: number;
  appId: number;
  organizationId: number;
  createdAt: Date;
  /** Data as JSON text if `_userEmail` was added; null if the data was stored unchanged. */
  completed: string | null;
  halted: HaltedRun[] | null;
  /** Number of runs that the statement inserted for the event, including runs that it marked as skipped. */
  started: number;
  /** Number of runs that the statement tried to insert for the event. Some of them were merged into waiting runs. */
  attempted: number;
}

const EVENT_COLUMNS = [
  "appId",
  "type",
  "head",
  "separator",
  "claimed",
  "userId",
  "dataSourceId",
  "dataSourceEntryId",
  "appNotificationId",
  "sessionId",
  "requestId",
  "runId",
] as const satisfies readonly (keyof NewLogEvent)[];

/** Returns the values of the parameters of {@link STORE_EVENTS_SQL}. */
export function createStoreEventsParameters(
  events: readonly NewLogEvent[],
  { share, queuedOf }: ReturnType<QueueLimits["lastCount"]>,
): unknown[] {
  const queuedCounts = events.map(({ appId }) => queuedOf(appId));
  return [...EVENT_COLUMNS.map((column) => events.map((event) => event[column])), share, queuedCounts];
}

/** If an app had fewer queued runs than this at the last count, the statement counts them again. Otherwise it uses the last count. */
const EXACT_COUNT_MAX = 1_000;

/**
 * Stores events. $1 to $12 are the columns of NewLogEvent, $13 is the maximum number of queued runs of one app, $14 the
 * last counts of queued runs of the events' apps. An event of an unknown app has no row in the result.
 *
 * The service adds the e-mail address only of users with a role on the app or a token of the app. Otherwise a caller
 * could look up the address of anyone in the organization. Lookups for single events are LATERAL, so that they use an
 * index however many rows the planner expects. A debounced run can be merged into a waiting run, and then has no row.
 * Debounced runs are written in the order of their actions, so that two statements cannot deadlock. The number of
 * skipped runs is limited: the last stored one stands for all further ones of the app with the same reason.
 */
export const STORE_EVENTS_SQL = `
  WITH source AS (
    SELECT incoming.*, app.organization_id, app.published_at, person.email
      FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
                  $9::bigint[], $10::bigint[], $11::uuid[], $12::bigint[], $14::int[]) WITH ORDINALITY
           AS incoming (app_id, type, head, separator, claimed, user_id, data_source_id, data_source_entry_id,
                     app_notification_id, session_id, request_id, run_id, waited, place)
      JOIN app ON app.id = incoming.app_id
      LEFT JOIN person
             ON person.id = incoming.user_id
            AND (EXISTS (SELECT FROM app_role WHERE app_role.app_id = app.id AND app_role.person_id = person.id)
                 OR EXISTS (SELECT FROM credential WHERE credential.app_id = app.id AND credential.person_id = person.id))),
  event AS (
    INSERT INTO log_event (app_id, type, data, user_id, data_source_id, data_source_entry_id, app_notification_id,
                           session_id, request_id, run_id)
    SELECT app_id, type,
           (head || coalesce(separator || '"_userEmail":' || coalesce(to_json(email)::text, claimed), '') || '}')::json,
           user_id, data_source_id, data_source_entry_id, app_notification_id, session_id, request_id, run_id
      FROM source ORDER BY place
    RETURNING id, request_id, data, created_at),
  matched AS (
    SELECT source.request_id, source.app_id, source.place, source.published_at, source.run_id, source.waited,
           found.action_id, found.waits_for
      FROM source CROSS JOIN LATERAL (
        SELECT DISTINCT action_id, waits_for FROM log_trigger
         WHERE app_id = source.app_id AND type = source.type
           AND data_source_id = ANY (ARRAY[0, coalesce(source.data_source_id, 0)])) AS found),
  waiting AS (
    SELECT app_id, CASE WHEN waited >= ${EXACT_COUNT_MAX} THEN waited ELSE (
             SELECT count(*) FROM (SELECT FROM run WHERE state = 'queued' AND run.app_id = apps.app_id
                                    LIMIT least($13::int, ${EXACT_COUNT_MAX})) AS queued) END AS count
      FROM (SELECT app_id, max(waited) AS waited FROM matched GROUP BY app_id) AS apps),
  judged AS (
    SELECT request_id, app_id, action_id, waits_for, place, cause.id AS cause_id, cause.chain_id, coalesce(cause.depth + 1, 0) AS depth,
           CASE WHEN published_at IS NULL THEN 'app unpublished'
                WHEN cause.depth >= ${RUN_CHAIN_DEPTH_MAX} THEN '${HALTED_RUN_REASONS.depth}'
                WHEN cause.id IS NOT NULL AND row_number() OVER (PARTITION BY cause.chain_id ORDER BY place, action_id) +
                     (SELECT count(*) FROM run
                       WHERE run.chain_id = cause.chain_id AND run.queued_at > now() - interval '1 minute'
                         AND run.state <> 'skipped')
                     > ${RUNS_PER_CHAIN_AND_MINUTE} THEN '${HALTED_RUN_REASONS.rate}'
                WHEN row_number() OVER (PARTITION BY app_id ORDER BY place, action_id) + waiting.count > $13::int
                THEN '${QUEUE_FULL_REASON}' END AS reason
      FROM matched JOIN waiting USING (app_id)
      LEFT JOIN LATERAL (SELECT id, coalesce(run.chain_id, id) AS chain_id, run.depth FROM run WHERE id = matched.run_id)
             AS cause ON true),
  numbered AS (
    SELECT judged.*, row_number() OVER (PARTITION BY app_id, reason ORDER BY place, action_id) AS number,
           count(*) OVER (PARTITION BY app_id, reason) AS total
      FROM judged),
  recorded AS (
    SELECT *, CASE WHEN number = ${SKIPPED_RUNS_PER_REASON} AND reason IS NOT NULL THEN total - number + 1 ELSE 1 END AS tick_count
      FROM numbered WHERE reason IS NULL OR number <= ${SKIPPED_RUNS_PER_REASON}),
  started AS (
    INSERT INTO run (app_id, action_id, copy, trigger, reason, state, finished_at, event_id,
                     cause_run_id, chain_id, depth, waits_for, tick_count)
    SELECT app_id, action_id, 'production', 'log',
           reason, ${NEW_RUN_STATE_SQL},
           CASE WHEN reason IS NOT NULL THEN now() END, event.id, cause_id, chain_id, depth, waits_for, tick_count
      FROM recorded JOIN event USING (request_id)
     ORDER BY CASE WHEN waits_for = 'debounce' THEN action_id END NULLS FIRST, place, action_id
    RETURNING id, app_id, action_id, event_id, state, reason, waits_for)
  SELECT event.request_id AS "requestId", event.id, event.created_at AS "createdAt",
         CASE WHEN source.separator IS NOT NULL THEN event.data::text END AS completed,
         source.app_id AS "appId", source.organization_id AS "organizationId", outcome.started, outcome.halted,
         (SELECT count(*) FROM recorded WHERE recorded.request_id = event.request_id) AS attempted,
         (SELECT count(pg_notify('${QUEUED_RUN_CHANNEL}', app_id::text)) FROM started
           WHERE state = 'queued' AND waits_for IS NULL) AS notified
    FROM event JOIN source USING (request_id)
    CROSS JOIN LATERAL (
      SELECT count(*) AS started,
             json_agg(json_build_object('id', id, 'actionId', action_id, 'reason', reason))
               FILTER (WHERE reason LIKE 'recursion:%') AS halted
        FROM started WHERE started.event_id = event.id) AS outcome`;
