import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Origins of an app's own pages, and the network address block that a visitor's session was made for. The indexes are what the bounds on
 * visitors' sessions read: those of one address, and all of one app.
 */
export class Visitors1764400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE app ADD COLUMN origins text[] NOT NULL DEFAULT '{}';
      ALTER TABLE credential ADD COLUMN visitor_block bytea;
      CREATE INDEX credential_visitor_block ON credential (app_id, visitor_block, id) WHERE visitor_block IS NOT NULL;
      CREATE INDEX credential_visitor ON credential (app_id, id) WHERE visitor_block IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX credential_visitor;
      DROP INDEX credential_visitor_block;
      ALTER TABLE credential DROP COLUMN visitor_block;
      ALTER TABLE app DROP COLUMN origins;
    `);
  }
}
