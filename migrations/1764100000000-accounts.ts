import type { MigrationInterface, QueryRunner } from "typeorm";

/** Accounts of people: passphrases, sessions, one-time links, failed sign-ins, and the audit log of access to the service. */
export class Accounts1764100000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE person
        ADD COLUMN passphrase_hash text,
        ADD COLUMN is_administrator boolean NOT NULL DEFAULT false,
        ADD COLUMN last_seen_at timestamptz;
      CREATE TABLE person_session (
        credential_id bigint PRIMARY KEY REFERENCES credential ON DELETE CASCADE,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        is_provisional boolean NOT NULL DEFAULT false,
        device text NOT NULL,
        address text,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_used_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX person_session_person ON person_session (person_id);
      CREATE TABLE one_time_link (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text NOT NULL CHECK (kind IN ('setup', 'invitation', 'reset')),
        hash bytea NOT NULL UNIQUE,
        person_id bigint REFERENCES person ON DELETE CASCADE,
        created_by bigint REFERENCES person ON DELETE SET NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        used_at timestamptz,
        revoked_at timestamptz
      );
      CREATE INDEX one_time_link_person ON one_time_link (person_id) WHERE person_id IS NOT NULL;
      CREATE INDEX one_time_link_author ON one_time_link (created_by) WHERE created_by IS NOT NULL;
      CREATE INDEX one_time_link_expiry ON one_time_link (expires_at);
      CREATE TABLE sign_in_failure (
        subject bytea PRIMARY KEY,
        failures timestamptz[] NOT NULL,
        level integer NOT NULL DEFAULT 0,
        blocked_until timestamptz,
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX sign_in_failure_age ON sign_in_failure (updated_at);
      CREATE TABLE access_event (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        type text NOT NULL,
        organization_id bigint REFERENCES organization ON DELETE CASCADE,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        subject_id bigint REFERENCES person ON DELETE SET NULL,
        address text,
        data json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX access_event_organization ON access_event (organization_id, id DESC);
      CREATE INDEX access_event_person ON access_event (person_id) WHERE person_id IS NOT NULL;
      CREATE INDEX access_event_subject ON access_event (subject_id) WHERE subject_id IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE access_event, sign_in_failure, one_time_link, person_session;
      ALTER TABLE person DROP COLUMN passphrase_hash, DROP COLUMN is_administrator, DROP COLUMN last_seen_at;
    `);
  }
}
