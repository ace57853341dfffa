import type { MigrationInterface, QueryRunner } from "typeorm";

/** Counter that orders the pulls of Git tags, and the tags whose actions were published. */
export class GitPullOrder1766700000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE app_git
        ADD COLUMN tag_pulls bigint NOT NULL DEFAULT 0,
        ADD COLUMN published_tags text[] NOT NULL DEFAULT '{}';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app_git DROP COLUMN tag_pulls, DROP COLUMN published_tags");
  }
}
