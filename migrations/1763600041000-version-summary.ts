import type { MigrationInterface, QueryRunner } from "typeorm";

/** Columns of a version that lists show, beside the snapshot. Earlier rows contained no configuration that could be restored. */
export class VersionSummary1763600041000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("DELETE FROM action_version");
    await runner.query("ALTER TABLE action_version ADD COLUMN summary json NOT NULL");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action_version DROP COLUMN summary");
  }
}
