import type { MigrationInterface, QueryRunner } from "typeorm";

/** Apps that are stages of one app, and the promotions of definitions between them. */
export class Stages1765900200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Of a stage: the app that it was made of first, its name, and when it is deleted.
      CREATE TABLE app_stage (
        app_id bigint PRIMARY KEY REFERENCES app ON DELETE CASCADE,
        root_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        name text NOT NULL,
        expires_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (root_id, name)
      );
      CREATE INDEX app_stage_expiry ON app_stage (expires_at) WHERE expires_at IS NOT NULL;
      -- Manifests before and after, compressed JSON. from_app_id is null of a rollback, rolled_back_to of a promotion.
      CREATE TABLE promotion (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        from_app_id bigint,
        rolled_back_to bigint,
        person_id bigint,
        plan json NOT NULL,
        before bytea NOT NULL,
        after bytea NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
      );
      CREATE INDEX promotion_app ON promotion (app_id, id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE promotion; DROP TABLE app_stage");
  }
}
