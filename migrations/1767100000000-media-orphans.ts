import type { MigrationInterface, QueryRunner } from "typeorm";

/** Blobs in the media store that have no row in `media_blob`, with the time at which a comparison first found them. */
export class MediaOrphans1767100000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE media_orphan (
        key text PRIMARY KEY,
        found_at timestamptz NOT NULL DEFAULT now()
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE media_orphan");
  }
}
