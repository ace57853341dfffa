/**
 * The one statement that stores a log event and starts what it triggers: index look-up, ledger rows and queue in a single round trip.
 * Knows the tables, not who asks.
 */
import { CHAIN_DEPTH_MAX, CHAIN_RUNS_PER_MINUTE } from "../../limits.js";
import { QUEUE_FULL } from "./queue-room.js";

export const HALTED = {
  depth: `recursion: more than ${CHAIN_DEPTH_MAX} runs deep`,
  rate: `recursion: more than ${CHAIN_RUNS_PER_MINUTE} runs of one chain in a minute`,
} as const;

/** A run that did not start, because its chain of causes has gone too far. */
export interface HaltedRun {
  id: number;
  actionId: number;
  reason: string;
}

export interface StoredEvent {
  id: number;
  organizationId: number;
  createdAt: Date;
  dataString: string;
  halted: HaltedRun[] | null;
  /** How many runs' rows it made, skipped ones too. */
  started: number;
}

/*
 * $1 app, $2 type, $3 data as JSON text without its closing brace, $4 what separates it from a further key, $5 user, $6 data source,
 * $7 its entry, $8 notification, $9 session, $10 request, $11 the run that emits it,
 * $12 the address that the caller gives an unknown user, as JSON text, $13 how many runs of one app may wait.
 * A user is known when it is a person of the app's own organization.
 */
export const STORE_EVENT = `
  WITH source AS (
    SELECT app.organization_id, app.published_at, person.email
      FROM app LEFT JOIN person ON person.id = $5 AND person.organization_id = app.organization_id
     WHERE app.id = $1),
  event AS (
    INSERT INTO log_event (app_id, type, data, user_id, data_source_id, data_source_entry_id, app_notification_id,
                           session_id, request_id, run_id)
    SELECT $1::bigint, $2::text,
           ($3::text || coalesce($4::text || '"_userEmail":' || coalesce(to_json(email)::text, $12::text), '') || '}')::json,
           $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::uuid, $11::bigint
      FROM source
    RETURNING id, data, created_at),
  matched AS (
    SELECT DISTINCT action_id FROM log_trigger
     WHERE app_id = $1 AND type = $2 AND data_source_id = ANY (ARRAY[0, coalesce($6, 0)])),
  cause AS (SELECT id, coalesce(chain_id, id) AS chain_id, depth FROM run WHERE id = $11),
  judged AS (
    SELECT action_id, cause.id AS cause_id, cause.chain_id, coalesce(cause.depth + 1, 0) AS depth,
           CASE WHEN source.published_at IS NULL THEN 'app unpublished'
                WHEN cause.depth >= ${CHAIN_DEPTH_MAX} THEN '${HALTED.depth}'
                WHEN cause.id IS NOT NULL AND row_number() OVER (ORDER BY action_id) +
                     (SELECT count(*) FROM run JOIN cause USING (chain_id)
                       WHERE run.queued_at > now() - interval '1 minute' AND run.state <> 'skipped')
                     > ${CHAIN_RUNS_PER_MINUTE} THEN '${HALTED.rate}'
                WHEN row_number() OVER (ORDER BY action_id) +
                     (SELECT count(*) FROM (SELECT FROM run WHERE state = 'queued' AND app_id = $1
                                             LIMIT $13::int) AS waiting) > $13::int
                THEN '${QUEUE_FULL}' END AS reason
      FROM matched CROSS JOIN source LEFT JOIN cause ON true),
  started AS (
    INSERT INTO run (app_id, action_id, copy, trigger, reason, state, finished_at, event_id,
                     cause_run_id, chain_id, depth)
    SELECT $1, action_id, 'production', 'log',
           reason, CASE WHEN reason IS NULL THEN 'queued' ELSE 'skipped' END,
           CASE WHEN reason IS NOT NULL THEN now() END, event.id, cause_id, chain_id, depth
      FROM judged CROSS JOIN event
    RETURNING id, action_id, state, reason)
  SELECT event.id, event.created_at AS "createdAt", event.data::text AS "dataString",
         source.organization_id AS "organizationId", (SELECT count(*) FROM started) AS started,
         (SELECT json_agg(json_build_object('id', id, 'actionId', action_id, 'reason', reason))
            FROM started WHERE reason LIKE 'recursion:%') AS halted,
         (SELECT svc_wake_all(array_agg(id)) FROM started WHERE state = 'queued' HAVING count(*) > 0) AS woken
    FROM event CROSS JOIN source`;
