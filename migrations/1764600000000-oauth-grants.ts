import type { MigrationInterface, QueryRunner } from "typeorm";

/** Programs that people authorized for an app: registered clients, grants, codes, refresh tokens. */
export class OauthGrants1764600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE oauth_client (
        id text PRIMARY KEY,
        name text NOT NULL,
        redirect_uris json NOT NULL,
        grant_types json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX oauth_client_age ON oauth_client (created_at);
      CREATE TABLE oauth_grant (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        client_id text NOT NULL REFERENCES oauth_client ON DELETE CASCADE,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        scopes text[] NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_used_at timestamptz,
        revoked_at timestamptz
      );
      CREATE INDEX oauth_grant_client ON oauth_grant (client_id);
      CREATE INDEX oauth_grant_person ON oauth_grant (person_id);
      CREATE INDEX oauth_grant_app ON oauth_grant (app_id);
      CREATE TABLE oauth_secret (
        hash bytea PRIMARY KEY,
        kind text NOT NULL CHECK (kind IN ('code', 'refresh')),
        grant_id bigint NOT NULL REFERENCES oauth_grant ON DELETE CASCADE,
        redirect_uri text,
        code_challenge text,
        expires_at timestamptz NOT NULL,
        used_at timestamptz
      );
      CREATE INDEX oauth_secret_grant ON oauth_secret (grant_id);
      CREATE INDEX oauth_secret_expiry ON oauth_secret (expires_at);
      CREATE TABLE oauth_device (
        hash bytea PRIMARY KEY,
        user_code text NOT NULL UNIQUE,
        client_id text NOT NULL REFERENCES oauth_client ON DELETE CASCADE,
        scopes text[] NOT NULL,
        app_id bigint,
        grant_id bigint REFERENCES oauth_grant ON DELETE CASCADE,
        is_denied boolean NOT NULL DEFAULT false,
        polled_at timestamptz,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX oauth_device_client ON oauth_device (client_id);
      CREATE INDEX oauth_device_grant ON oauth_device (grant_id) WHERE grant_id IS NOT NULL;
      CREATE INDEX oauth_device_expiry ON oauth_device (expires_at);
      ALTER TABLE credential ADD COLUMN grant_id bigint REFERENCES oauth_grant ON DELETE CASCADE;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE credential DROP COLUMN grant_id;
      DROP TABLE oauth_device, oauth_secret, oauth_grant, oauth_client;
    `);
  }
}
