import type { MigrationInterface, QueryRunner } from "typeorm";

/** Size of an entry's text, so that a page is limited in bytes without reading the entries that it leaves out. */
export class EntrySize1763600100500 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE data_source_entry
        ADD COLUMN bytes integer NOT NULL GENERATED ALWAYS AS (octet_length(data::text)) STORED;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE data_source_entry DROP COLUMN bytes");
  }
}
