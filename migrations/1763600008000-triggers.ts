import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Triggers that start runs without a caller: schedules with their next run time, log triggers with the events that they match. Also the
 * reason why a run was skipped.
 */
export class Triggers1763600008000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE schedule (
        action_id bigint PRIMARY KEY REFERENCES action ON DELETE CASCADE,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        frequency text NOT NULL,
        timezone text,
        next_tick timestamptz NOT NULL
      );
      CREATE INDEX schedule_next_tick ON schedule (next_tick);
      CREATE INDEX schedule_app ON schedule (app_id);
      -- data_source_id 0 stands for every data source, and for none.
      CREATE TABLE log_trigger (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        type text NOT NULL,
        data_source_id bigint NOT NULL,
        action_id bigint NOT NULL REFERENCES action ON DELETE CASCADE,
        PRIMARY KEY (app_id, type, data_source_id, action_id)
      );
      CREATE INDEX log_trigger_action ON log_trigger (action_id);
      -- user_id is whatever the caller knows its user by: no foreign key.
      CREATE TABLE log_event (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        user_id bigint,
        data_source_id bigint,
        data_source_entry_id bigint,
        app_notification_id bigint,
        session_id bigint,
        request_id uuid NOT NULL,
        run_id bigint,
        type text NOT NULL,
        data json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX log_event_app ON log_event (app_id, id DESC);
      ALTER TABLE run
        ADD COLUMN tick timestamptz,
        ADD COLUMN tick_count integer NOT NULL DEFAULT 1,
        ADD COLUMN reason text,
        ADD COLUMN event_id bigint,
        ADD COLUMN cause_run_id bigint,
        ADD COLUMN chain_id bigint,
        ADD COLUMN depth smallint NOT NULL DEFAULT 0,
        ADD COLUMN replay_of bigint,
        ADD COLUMN version_id bigint,
        ADD CHECK ((state = 'skipped') = (reason IS NOT NULL));
      CREATE UNIQUE INDEX run_tick ON run (action_id, tick) WHERE tick IS NOT NULL;
      CREATE INDEX run_scheduled ON run (action_id) WHERE trigger = 'schedule' AND finished_at IS NULL;
      CREATE INDEX run_chain ON run (chain_id, queued_at) WHERE chain_id IS NOT NULL;
      CREATE INDEX run_app ON run (app_id, id DESC);
      CREATE INDEX run_action ON run (action_id, id DESC);
      -- plpgsql, because the queue's own schema is made after this one. One notice for all of them.
      CREATE FUNCTION svc_wake_all(run_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          IF cardinality(run_ids) = 0 THEN RETURN; END IF;
          PERFORM graphile_worker.add_jobs(ARRAY(
            SELECT ('run', json_build_object('runId', id), NULL, NULL, 1, 'run:' || id, NULL, NULL)::graphile_worker.job_spec
              FROM unnest(run_ids) AS id));
        END
      $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP FUNCTION svc_wake_all;
      DROP INDEX run_action, run_app, run_chain, run_scheduled, run_tick;
      ALTER TABLE run
        DROP COLUMN tick, DROP COLUMN tick_count, DROP COLUMN reason, DROP COLUMN event_id, DROP COLUMN cause_run_id,
        DROP COLUMN chain_id, DROP COLUMN depth, DROP COLUMN replay_of, DROP COLUMN version_id;
      DROP TABLE log_event, log_trigger, schedule;
    `);
  }
}
