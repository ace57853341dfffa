import type { MigrationInterface, QueryRunner } from "typeorm";

/** Names of settings that a manifest declared without a value, so that reading the manifest returns them. */
export class DeclaredSettings1764300100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE declared_setting (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        key text NOT NULL,
        -- Whether the value, once it is set, may appear in what runs show.
        not_secret boolean NOT NULL DEFAULT false,
        PRIMARY KEY (app_id, key)
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE declared_setting");
  }
}
