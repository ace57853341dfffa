/** SQL statement that stores log events, and queues runs of the actions that they trigger, for any number of events and apps. */
import { NEW_RUN_STATE_SQL } from "../../data/run.js";
import { RUN_CHAIN_DEPTH_MAX, RUNS_PER_CHAIN_AND_MINUTE } from "../../limits.js";
import { QUEUE_FULL_REASON, QUEUED_RUN_CHANNEL, type QueueLimits } from "./queue-limits.js";

/**
 * Maximum number of skipped runs that one statement stores per app and reason. The `tickCount` of the last stored run also counts all
 * further skipped runs.
 */
const SKIPPED_RUNS_PER_REASON = 100;

export const HALTED_RUN_REASONS = {
  depth: `recursion: more than ${RUN_CHAIN_DEPTH_MAX} runs deep`,
  rate: `recursion: more than ${RUNS_PER_CHAIN_AND_MINUTE} runs of one chain in a minute`,
} as const;

export interface HaltedRun {
  id: number;
  actionId: number;
  reason: string;
}

export interface NewLogEvent {
  appId: number;
  type: string;
  /** Data as JSON text without the closing brace. The statement adds the key `_userEmail`, if needed, and the brace. */
  openJson: string;
  /** Text between `openJson` and `_userEmail`: a comma, or "" if the data has no keys. Null if no `_userEmail` is needed. */
  separator: string | null;
  /** `_userEmail` in the received data, as JSON text. It is stored only if the statement does not find the user's address. */
  receivedUserEmail: string | null;
  userId: number | null;
  dataSourceId: number | null;
  dataSourceEntryId: number | null;
  appNotificationId: number | null;
  sessionId: number | null;
  /** Identifies the event in the result rows of the statement. */
  requestId: string;
  /** ID of the run that emitted the event; null for other events. */
  runId: number | null;
}

export interface StoredLogEvent {
  requestId: string;
  id: number;
  appId: number;
  organizationId: number;
  createdAt: Date;
  /** Stored data as JSON text if the event names a user, because `_userEmail` may have been added; null for other events. */
  storedData: string | null;
  haltedRuns: HaltedRun[] | null;
  /** Number of stored runs that the event caused, including skipped ones. */
  storedRunCount: number;
  /** Number of runs that the statement tried to store for the event, including those that were merged into waiting runs (debounce). */
  attemptedRunCount: number;
}

const EVENT_COLUMNS = [
  "appId",
  "type",
  "openJson",
  "separator",
  "receivedUserEmail",
  "userId",
  "dataSourceId",
  "dataSourceEntryId",
  "appNotificationId",
  "sessionId",
  "requestId",
  "runId",
] as const satisfies readonly (keyof NewLogEvent)[];

/** Returns the parameters of STORE_EVENTS_SQL. */
export function createStoreEventsParameters(
  events: readonly NewLogEvent[],
  { limitPerApp, getQueuedCount }: ReturnType<QueueLimits["getLastCount"]>,
): unknown[] {
  const queuedCounts = events.map(({ appId }) => getQueuedCount(appId));
  return [...EVENT_COLUMNS.map((column) => events.map((event) => event[column])), limitPerApp, queuedCounts];
}

/** The statement counts an app's queued runs exactly only if their last known number is below this maximum. */
const EXACTLY_COUNTED_RUNS_MAX = 1_000;

/**
 * Stores events, and runs of the actions that they trigger. $1 to $12 are the columns of NewLogEvent. $13 is the maximum queued runs of one
 * app. $14 contains the last known number of queued runs of each event's app. Adds the e-mail address only of users with a role on the app
 * or a token of the app. Otherwise a caller could look up the address of anyone in the organization. Events of unknown apps have no row in
 * the result.
 */
export const STORE_EVENTS_SQL = `
  WITH source AS (
    SELECT incoming.*, app.organization_id, app.published_at, person.email
      FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
                  $9::bigint[], $10::bigint[], $11::uuid[], $12::bigint[], $14::int[]) WITH ORDINALITY
           AS incoming (app_id, type, open_json, separator, received_user_email, user_id, data_source_id, data_source_entry_id,
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
           (open_json || coalesce(separator || '"_userEmail":' || coalesce(to_json(email)::text, received_user_email), '') || '}')::json,
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
    SELECT app_id, CASE WHEN waited >= ${EXACTLY_COUNTED_RUNS_MAX} THEN waited ELSE (
             SELECT count(*) FROM (SELECT FROM run WHERE state = 'queued' AND run.app_id = apps.app_id
                                    LIMIT least($13::int, ${EXACTLY_COUNTED_RUNS_MAX})) AS queued) END AS count
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
         CASE WHEN source.separator IS NOT NULL THEN event.data::text END AS "storedData",
         source.app_id AS "appId", source.organization_id AS "organizationId", outcome."storedRunCount", outcome."haltedRuns",
         (SELECT count(*) FROM recorded WHERE recorded.request_id = event.request_id) AS "attemptedRunCount",
         (SELECT count(pg_notify('${QUEUED_RUN_CHANNEL}', app_id::text)) FROM started
           WHERE state = 'queued' AND waits_for IS NULL) AS notified
    FROM event JOIN source USING (request_id)
    CROSS JOIN LATERAL (
      SELECT count(*) AS "storedRunCount",
             json_agg(json_build_object('id', id, 'actionId', action_id, 'reason', reason))
               FILTER (WHERE reason LIKE 'recursion:%') AS "haltedRuns"
        FROM started WHERE started.event_id = event.id) AS outcome`;
