import type { MigrationInterface, QueryRunner } from "typeorm";

/** Stores a payload only once: a run of a log event refers to the event, and a log entry to its run. Existing rows do not change. */
export class PayloadOnce1763600086000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE run ALTER COLUMN payload DROP NOT NULL;
      -- Not checked against the rows that are there: all of them have a payload.
      ALTER TABLE run ADD CONSTRAINT run_payload CHECK (payload IS NOT NULL OR event_id IS NOT NULL) NOT VALID;
      CREATE INDEX credential_revoked ON credential (revoked_at) WHERE revoked_at IS NOT NULL;
      CREATE INDEX run_event ON run (event_id) WHERE event_id IS NOT NULL;
      -- Where in the text of data the run's payload belongs, counted from 1; null: data holds its own.
      ALTER TABLE execution_log ADD COLUMN payload_at integer;

      -- plpgsql, because it keeps its plans. What a run is started with: its own payload, or the log entry of its event.
      CREATE FUNCTION svc_run_payload(payload json, event_id bigint) RETURNS text STABLE LANGUAGE plpgsql AS $$
        DECLARE
          iso CONSTANT text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
          composed text;
        BEGIN
          IF payload IS NOT NULL THEN RETURN payload::text; END IF;
          SELECT json_build_object('trigger', 'log', 'log', json_build_object(
                   'id', event.id, 'userId', event.user_id, 'appId', event.app_id, 'organizationId', app.organization_id,
                   'dataSourceId', event.data_source_id, 'dataSourceEntryId', event.data_source_entry_id,
                   'appNotificationId', event.app_notification_id, 'sessionId', event.session_id,
                   'requestId', event.request_id, 'type', event.type, 'data', event.data, 'dataString', event.data::text,
                   'createdAt', to_char(event.created_at AT TIME ZONE 'UTC', iso),
                   'updatedAt', to_char(event.created_at AT TIME ZONE 'UTC', iso)))::text
            INTO composed FROM log_event AS event JOIN app ON app.id = event.app_id
           WHERE event.id = svc_run_payload.event_id;
          RETURN coalesce(composed, '{}');
        END
      $$;
      -- The text of a log entry's data, whole.
      CREATE FUNCTION svc_entry_data(data json, payload_at integer, run_id bigint) RETURNS text STABLE LANGUAGE plpgsql AS $$
        BEGIN
          IF payload_at IS NULL THEN RETURN data::text; END IF;
          RETURN overlay(data::text PLACING coalesce(
            (SELECT svc_run_payload(run.payload, run.event_id) FROM run WHERE run.id = run_id), '{}')
            FROM payload_at FOR length('null'));
        END
      $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      UPDATE execution_log SET data = svc_entry_data(data, payload_at, run_id)::json WHERE payload_at IS NOT NULL;
      UPDATE run SET payload = svc_run_payload(payload, event_id)::json WHERE payload IS NULL;
      DROP FUNCTION svc_entry_data, svc_run_payload;
      DROP INDEX run_event, credential_revoked;
      ALTER TABLE run DROP CONSTRAINT run_payload;
      ALTER TABLE execution_log DROP COLUMN payload_at;
      ALTER TABLE run ALTER COLUMN payload SET NOT NULL;
    `);
  }
}
