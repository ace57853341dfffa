import type { MigrationInterface, QueryRunner } from "typeorm";

/** Time of the last change of any setting of an app, which conditional requests compare. */
export class SettingsState1764000500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- The last change of any setting of the app; null: none since this column exists.
      ALTER TABLE app ADD COLUMN settings_updated_at timestamptz;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app DROP COLUMN settings_updated_at");
  }
}
