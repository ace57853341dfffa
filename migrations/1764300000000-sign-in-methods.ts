import type { MigrationInterface, QueryRunner } from "typeorm";

/** Passkeys and their challenges, identities at OpenID providers, and the provider by which a session began. */
export class SignInMethods1764300000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE passkey (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        credential_id text NOT NULL UNIQUE,
        public_key bytea NOT NULL,
        counter bigint NOT NULL,
        transports json NOT NULL,
        name text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_used_at timestamptz
      );
      CREATE INDEX passkey_person ON passkey (person_id);
      CREATE TABLE passkey_challenge (
        hash bytea PRIMARY KEY,
        session_id bigint REFERENCES credential ON DELETE CASCADE,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX passkey_challenge_expiry ON passkey_challenge (expires_at);
      CREATE INDEX passkey_challenge_session ON passkey_challenge (session_id) WHERE session_id IS NOT NULL;
      CREATE TABLE person_identity (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        issuer text NOT NULL,
        subject text NOT NULL,
        provider text NOT NULL,
        manages_roles boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_used_at timestamptz,
        UNIQUE (issuer, subject)
      );
      CREATE INDEX person_identity_person ON person_identity (person_id);
      ALTER TABLE person_session ADD COLUMN provider text;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE person_session DROP COLUMN provider;
      DROP TABLE person_identity, passkey_challenge, passkey;
    `);
  }
}
