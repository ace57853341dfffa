import type { MigrationInterface, QueryRunner } from "typeorm";

/** Runs, the processes that execute them (`instance`), their execution log, and the request times for rate limits. */
export class Runs1763600003000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE instance (
        id uuid PRIMARY KEY,
        roles text[] NOT NULL,
        started_at timestamptz NOT NULL DEFAULT now(),
        lease_until timestamptz NOT NULL
      );
      CREATE TABLE run (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        action_id bigint NOT NULL,
        copy text NOT NULL CHECK (copy IN ('master', 'production')),
        trigger text NOT NULL CHECK (trigger IN ('manual', 'schedule', 'log', 'analytics')),
        payload json NOT NULL,
        state text NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'skipped', 'cancelled')),
        holder uuid,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        credential_id bigint REFERENCES credential ON DELETE SET NULL,
        idempotency_key text,
        queued_at timestamptz NOT NULL DEFAULT now(),
        started_at timestamptz,
        finished_at timestamptz,
        CHECK ((state = 'running') = (holder IS NOT NULL)),
        CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
      );
      CREATE INDEX run_unfinished ON run (state, queued_at) WHERE finished_at IS NULL;
      CREATE INDEX run_holder ON run (holder) WHERE holder IS NOT NULL;
      CREATE INDEX run_finished ON run (finished_at) WHERE finished_at IS NOT NULL;
      CREATE UNIQUE INDEX run_idempotency ON run (action_id, credential_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
      CREATE TABLE execution_log (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        task_id bigint NOT NULL,
        run_id bigint NOT NULL UNIQUE,
        type text NOT NULL CHECK (type IN ('app.task.completed', 'app.task.failed')),
        data json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX execution_log_app ON execution_log (app_id, id DESC);
      CREATE INDEX execution_log_task ON execution_log (app_id, task_id, id DESC);
      CREATE INDEX execution_log_age ON execution_log (created_at);
      -- plpgsql, because the queue's own schema is made after this one.
      CREATE FUNCTION svc_wake(run_id bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM graphile_worker.add_job(
            'run', json_build_object('runId', run_id), job_key => 'run:' || run_id, max_attempts => 1);
        END
      $$;
      -- Unlogged: losing the window in a crash of the database is cheaper than a disk flush for every request.
      CREATE UNLOGGED TABLE rate_window (
        app_id bigint NOT NULL,
        class text NOT NULL,
        hits timestamptz[] NOT NULL,
        PRIMARY KEY (app_id, class)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE rate_window, execution_log, run, instance; DROP FUNCTION svc_wake");
  }
}
