import type { MigrationInterface, QueryRunner } from "typeorm";

/** Address of a proxy whose `X-Forwarded-For` a process ignores. `npm run doctor` reports it. */
export class IgnoredProxy1764000750000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE instance ADD COLUMN ignored_proxy text");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE instance DROP COLUMN ignored_proxy");
  }
}
