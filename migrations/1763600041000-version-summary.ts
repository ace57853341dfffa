import type { MigrationInterface, QueryRunner } from "typeorm";

/** Summary of a version for lists. Deletes all earlier versions, because they contained no configuration that could be restored. */
export class VersionSummary1763600041000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("DELETE FROM action_version");
    await runner.query("ALTER TABLE action_version ADD COLUMN summary json NOT NULL");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action_version DROP COLUMN summary");
  }
}
