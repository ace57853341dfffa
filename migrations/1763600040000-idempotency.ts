import type { MigrationInterface, QueryRunner } from "typeorm";

/** Responses to requests with an Idempotency-Key. A repeated request gets the stored response and creates nothing again. */
export class Idempotency1763600040000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE idempotency (
        credential_id bigint NOT NULL REFERENCES credential ON DELETE CASCADE,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        key text NOT NULL,
        request bytea NOT NULL,
        -- null within the transaction that claims the key, never outside of it.
        answer json,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (credential_id, app_id, key)
      );
      CREATE INDEX idempotency_app ON idempotency (app_id);
      CREATE INDEX idempotency_age ON idempotency (created_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE idempotency");
  }
}
