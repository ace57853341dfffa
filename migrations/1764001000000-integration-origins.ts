import type { MigrationInterface, QueryRunner } from "typeorm";

/** Origins to which the code of an action may send requests. */
export class IntegrationOrigins1764001000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action ADD COLUMN integration_origins json NOT NULL DEFAULT '[]'");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action DROP COLUMN integration_origins");
  }
}
