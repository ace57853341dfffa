import type { MigrationInterface, QueryRunner } from "typeorm";

/** Marks credentials that an app's pages use as their session, to distinguish them from tokens that editors have created. */
export class PageSessions1763600061000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential ADD COLUMN page_session boolean NOT NULL DEFAULT false");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential DROP COLUMN page_session");
  }
}
