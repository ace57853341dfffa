import type { MigrationInterface, QueryRunner } from "typeorm";

/** Runtime sessions that the app's own pages give out: not among the tokens that editors made, and bound to what they were given for. */
export class PageSessions1763600061000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential ADD COLUMN page_session boolean NOT NULL DEFAULT false");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential DROP COLUMN page_session");
  }
}
