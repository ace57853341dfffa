import type { MigrationInterface, QueryRunner } from "typeorm";

/** Sessions that the app's own pages create. They are not among the tokens that editors made, and are bound to their purpose. */
export class PageSessions1763600061000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential ADD COLUMN page_session boolean NOT NULL DEFAULT false");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential DROP COLUMN page_session");
  }
}
