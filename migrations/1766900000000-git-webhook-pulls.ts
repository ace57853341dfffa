import type { MigrationInterface, QueryRunner } from "typeorm";

/** Number of the last pull that a webhook of a git server has started. */
export class GitWebhookPulls1766900000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE git_webhook ADD COLUMN pull_number bigint");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE git_webhook DROP COLUMN pull_number");
  }
}
