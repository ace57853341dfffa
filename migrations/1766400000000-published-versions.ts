import type { MigrationInterface, QueryRunner } from "typeorm";

/** Time at which a version of an action was last published, and the fingerprint by which a publication finds the version. */
export class PublishedVersions1766400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action_version ADD COLUMN state bytea, ADD COLUMN published_at timestamptz");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action_version DROP COLUMN state, DROP COLUMN published_at");
  }
}
