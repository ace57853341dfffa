import type { MigrationInterface, QueryRunner } from "typeorm";

/** Secret bindings: the settings that the service sends to origins, the settings that code cannot read, and OAuth 2 access tokens. */
export class SecretBindings1764700100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE secret_bindings (
        app_id bigint PRIMARY KEY REFERENCES app ON DELETE CASCADE,
        bindings json NOT NULL,
        updated_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp())
      );
      -- A key stays here when its bindings are removed: its value must not return to code by that.
      CREATE TABLE sealed_setting (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        key text NOT NULL,
        PRIMARY KEY (app_id, key)
      );
      CREATE TABLE integration_token (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        key text NOT NULL,
        origin text NOT NULL,
        -- Hash of the binding and of the value that the token was fetched with.
        basis text NOT NULL,
        sealed bytea,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (app_id, key, origin)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE integration_token, sealed_setting, secret_bindings");
  }
}
