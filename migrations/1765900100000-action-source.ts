import type { MigrationInterface, QueryRunner } from "typeorm";

/** Files from which the code of an action is built, with the source map of the code. */
export class ActionSource1765900100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action ADD COLUMN source json");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action DROP COLUMN source");
  }
}
