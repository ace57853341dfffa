import type { MigrationInterface, QueryRunner } from "typeorm";

/** Option of an app: an action can be published only after its tests have passed. */
export class TestsRequired1766500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app ADD COLUMN requires_tests boolean NOT NULL DEFAULT false");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app DROP COLUMN requires_tests");
  }
}
