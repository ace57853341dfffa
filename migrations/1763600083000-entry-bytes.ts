import type { MigrationInterface, QueryRunner } from "typeorm";

/** Size of each log entry and payload in a separate column, so that a page can stop at a number of bytes before any of them is read. */
export class EntryBytes1763600083000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE execution_log ADD COLUMN bytes integer GENERATED ALWAYS AS (octet_length(data::text)) STORED;
      ALTER TABLE run ADD COLUMN payload_bytes integer GENERATED ALWAYS AS (octet_length(payload::text)) STORED;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE execution_log DROP COLUMN bytes; ALTER TABLE run DROP COLUMN payload_bytes");
  }
}
