import type { MigrationInterface, QueryRunner } from "typeorm";

/** Identity of the store that contains the media. A process that is configured with another local store cannot start. */
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
