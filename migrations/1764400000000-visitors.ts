import type { MigrationInterface, QueryRunner } from "typeorm";

/** Origins whose pages may use the app, and the block of network addresses for which a visitor's session was created. */
export class Visitors1764400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE app ADD COLUMN origins text[] NOT NULL DEFAULT '{}';
      ALTER TABLE credential ADD COLUMN visitor_block bytea;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE credential DROP COLUMN visitor_block;
      ALTER TABLE app DROP COLUMN origins;
    `);
  }
}
