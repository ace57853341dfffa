import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Functions that announce queued runs by NOTIFY instead of a graphile-worker job. Only processes of the previous release call them. These
 * processes create the schema graphile_worker themselves. The next release can drop the functions and that schema.
 */
export class QueuedNotices1766000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE OR REPLACE FUNCTION svc_wake(run_id bigint) RETURNS void LANGUAGE sql AS $$
        SELECT pg_notify('svc_queued', '')
      $$;
      CREATE OR REPLACE FUNCTION svc_wake_all(run_ids bigint[]) RETURNS void LANGUAGE sql AS $$
        SELECT pg_notify('svc_queued', '') WHERE cardinality(run_ids) > 0
      $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE OR REPLACE FUNCTION svc_wake(run_id bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM graphile_worker.add_job(
            'run', json_build_object('runId', run_id), job_key => 'run:' || run_id, max_attempts => 1);
        END
      $$;
      CREATE OR REPLACE FUNCTION svc_wake_all(run_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          IF cardinality(run_ids) = 0 THEN RETURN; END IF;
          PERFORM graphile_worker.add_jobs(ARRAY(
            SELECT ('run', json_build_object('runId', id), NULL, NULL, 1, 'run:' || id, NULL, NULL)::graphile_worker.job_spec
              FROM unnest(run_ids) AS id));
        END
      $$;
    `);
  }
}
