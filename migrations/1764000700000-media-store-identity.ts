import type { MigrationInterface, QueryRunner } from "typeorm";

/** The database records which store has its media, so that a process with another local store is refused at its start. */
export class MediaStoreIdentity1764000700000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- null: no process has recorded its store yet.
      ALTER TABLE media_store ADD COLUMN identity text;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE media_store DROP COLUMN identity");
  }
}
