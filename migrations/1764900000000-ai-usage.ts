import type { MigrationInterface, QueryRunner } from "typeorm";

/** Use of language models per app and day (UTC), for daily limits. Tokens of calls in progress are counted in advance. */
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
