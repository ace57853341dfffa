import type { MigrationInterface, QueryRunner } from "typeorm";

/** Accepted webhooks of git servers, until their pull has ended. */
export class GitWebhooks1766800000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE git_webhook (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app_git ON DELETE CASCADE,
        ref text NOT NULL,
        holder uuid,
        claimed_at timestamptz,
        attempts int NOT NULL DEFAULT 0);
      CREATE UNIQUE INDEX git_webhook_waiting ON git_webhook (app_id, ref) WHERE holder IS NULL;
      CREATE INDEX git_webhook_app ON git_webhook (app_id, id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE git_webhook");
  }
}
