import type { MigrationInterface, QueryRunner } from "typeorm";

/** Metadata of the requests that a run sent to other services. */
export class RunRequests1764700000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE run ADD COLUMN requests json");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE run DROP COLUMN requests");
  }
}
