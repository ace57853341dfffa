import type { MigrationInterface, QueryRunner } from "typeorm";

/** Time since when a person administers the service, which conditional requests compare. */
export class AdministratorTimes1766200000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE person ADD COLUMN administrator_since timestamptz NOT NULL DEFAULT now()");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE person DROP COLUMN administrator_since");
  }
}
