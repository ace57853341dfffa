import type { MigrationInterface, QueryRunner } from "typeorm";

/** What each snapshot of an app was taken for; those that are older than this were asked for. */
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
