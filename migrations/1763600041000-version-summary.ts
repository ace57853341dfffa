import type { MigrationInterface, QueryRunner } from "typeorm";

/** What a list shows of a version, beside the snapshot. Rows from before held no configuration that could be restored. */
export class VersionSummary1763600041000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("DELETE FROM action_version");
    await runner.query("ALTER TABLE action_version ADD COLUMN summary json NOT NULL");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action_version DROP COLUMN summary");
  }
}
