import type { MigrationInterface, QueryRunner } from "typeorm";

/** TypeScript declarations of packages are stored with the scripts that were built from them. */
export class Declarations1763600260000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- A JSON array of texts, files that name each other by number; null: it declares nothing, or was kept before this was looked at.
      ALTER TABLE kept_script ADD COLUMN declarations bytea, ADD COLUMN declaration_bytes integer NOT NULL DEFAULT 0;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE kept_script DROP COLUMN declarations, DROP COLUMN declaration_bytes");
  }
}
