import type { MigrationInterface, QueryRunner } from "typeorm";

/** Reason for each snapshot of an app. Snapshots from before this migration were requested by a person. */
export class AppVersions1763600060000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE app_version ADD COLUMN action text NOT NULL DEFAULT 'create'
        CHECK (action IN ('create', 'publish', 'pre-restore'));
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app_version DROP COLUMN action");
  }
}
