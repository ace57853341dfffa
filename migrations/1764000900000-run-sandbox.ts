import type { MigrationInterface, QueryRunner } from "typeorm";

/** Sandbox in which the code of a run was evaluated. */
export class RunSandbox1764000900000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE run ADD COLUMN sandbox text");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE run DROP COLUMN sandbox");
  }
}
