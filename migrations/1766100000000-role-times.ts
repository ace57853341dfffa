import type { MigrationInterface, QueryRunner } from "typeorm";

const TABLES = ["organization_member", "app_member", "app_editor"];

/** Time of the last change of each role, which conditional requests compare. */
export class RoleTimes1766100000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) {
      await runner.query(`ALTER TABLE ${table} ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now()`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`ALTER TABLE ${table} DROP COLUMN updated_at`);
  }
}
