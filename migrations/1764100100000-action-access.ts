import type { MigrationInterface, QueryRunner } from "typeorm";

/** Callers who may run an action on demand with a runtime token. Null stands for "everyone". */
export class ActionAccess1764100100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action ADD COLUMN access json");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action DROP COLUMN access");
  }
}
