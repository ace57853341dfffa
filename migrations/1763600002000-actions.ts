import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Drafts and live versions of actions, and their version history. Names are unique among the drafts and among the live versions of an app.
 */
export class Actions1763600002000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE action (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        master_id bigint UNIQUE REFERENCES action ON DELETE CASCADE,
        name text NOT NULL,
        description text,
        code text NOT NULL,
        active boolean NOT NULL DEFAULT false,
        environment text NOT NULL CHECK (environment IN ('server', 'client', 'any')),
        action_version text NOT NULL DEFAULT 'v3',
        triggers json NOT NULL DEFAULT '[]',
        dependencies json NOT NULL DEFAULT '[]',
        assets json NOT NULL DEFAULT '[]',
        frequency text,
        timezone text,
        last_run_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE UNIQUE INDEX action_name ON action (app_id, name, (master_id IS NULL));
      CREATE INDEX action_list ON action (app_id, id DESC) WHERE master_id IS NULL;
      CREATE TABLE action_version (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        action_id bigint NOT NULL REFERENCES action ON DELETE CASCADE,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        data json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX action_version_action ON action_version (action_id, id DESC);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE action_version, action");
  }
}
