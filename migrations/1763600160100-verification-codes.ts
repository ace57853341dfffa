import type { MigrationInterface, QueryRunner } from "typeorm";

/** Codes by which app users verify an address, and the addresses that are verified for a sign-in. */
export class VerificationCodes1763600160100 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- A page has one code at a time. entry_id is null where nobody has the address: such a code is sent to nobody and fits nobody.
      CREATE TABLE verification_code (
        credential_id bigint PRIMARY KEY REFERENCES credential ON DELETE CASCADE,
        app_id bigint NOT NULL,
        subject bytea NOT NULL,
        data_source_id integer NOT NULL,
        entry_id bigint,
        address text NOT NULL,
        code bytea NOT NULL,
        failures integer NOT NULL DEFAULT 0,
        expires_at timestamptz NOT NULL,
        FOREIGN KEY (app_id, data_source_id) REFERENCES data_source (app_id, id) ON DELETE CASCADE
      );
      CREATE INDEX verification_code_data_source ON verification_code (app_id, data_source_id);
      -- Codes that were asked for; subject is a hash of for whom or from where.
      CREATE TABLE verification_request (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        subject bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp()
      );
      CREATE INDEX verification_request_subject ON verification_request (subject, created_at);
      CREATE INDEX verification_request_age ON verification_request (created_at);
      -- verified: the moment at which each kind of address was proven. pending: a second factor is still missing.
      ALTER TABLE app_user_session ADD COLUMN verified jsonb NOT NULL DEFAULT '{}', ADD COLUMN pending boolean NOT NULL DEFAULT false;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE app_user_session DROP COLUMN verified, DROP COLUMN pending;
      DROP TABLE verification_request, verification_code;
    `);
  }
}
