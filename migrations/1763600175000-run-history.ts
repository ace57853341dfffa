import type { MigrationInterface, QueryRunner } from "typeorm";

/** Indexes for the history of runs by time and for runs that did not complete, and payloads that an author stores to test an action. */
export class RunHistory1763600175000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE INDEX run_time ON run (app_id, queued_at);
      -- Few runs are in it, so that a failure of months ago is found without reading all that went well since.
      CREATE INDEX run_gone_wrong ON run (app_id, id DESC) WHERE state IN ('failed', 'skipped', 'cancelled');
      CREATE TABLE payload_preset (
        action_id bigint NOT NULL REFERENCES action ON DELETE CASCADE,
        name text NOT NULL,
        payload json NOT NULL,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (action_id, name)
      );
      CREATE INDEX payload_preset_person ON payload_preset (person_id) WHERE person_id IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE payload_preset; DROP INDEX run_gone_wrong, run_time");
  }
}
