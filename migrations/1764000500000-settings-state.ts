import type { MigrationInterface, QueryRunner } from "typeorm";

/** State of an app's settings as a whole, which a precondition can name. */
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
