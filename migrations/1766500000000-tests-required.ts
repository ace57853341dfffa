import type { MigrationInterface, QueryRunner } from "typeorm";

/** Apps whose actions are published only after their tests. */
export class TestsRequired1766500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app ADD COLUMN requires_tests boolean NOT NULL DEFAULT false");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app DROP COLUMN requires_tests");
  }
}
