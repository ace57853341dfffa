import type { MigrationInterface, QueryRunner } from "typeorm";

/** What an app has asked of language models on a day (UTC), for its daily limits. Tokens of calls under way are counted ahead. */
export class AiUsage1764900000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE ai_usage (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        day date NOT NULL,
        requests bigint NOT NULL DEFAULT 0,
        tokens bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (app_id, day)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE ai_usage");
  }
}
