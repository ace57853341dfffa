import type { MigrationInterface, QueryRunner } from "typeorm";

/** Organizations, people, apps, editors, credentials, and the audit log. */
export class Foundation1763600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE organization (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE TABLE person (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        organization_id bigint NOT NULL REFERENCES organization ON DELETE CASCADE,
        first_name text NOT NULL,
        last_name text NOT NULL,
        email text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE UNIQUE INDEX person_email ON person (lower(email));
      CREATE TABLE app (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        organization_id bigint NOT NULL REFERENCES organization ON DELETE CASCADE,
        name text NOT NULL,
        published_at timestamptz,
        starting_page_id bigint,
        hooks json,
        is_template boolean NOT NULL DEFAULT false,
        dependencies json,
        icon text,
        is_system_template boolean NOT NULL DEFAULT false,
        is_hidden boolean NOT NULL DEFAULT false,
        data_key bytea,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX app_organization ON app (organization_id);
      CREATE TABLE app_editor (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        PRIMARY KEY (app_id, person_id)
      );
      CREATE INDEX app_editor_person ON app_editor (person_id);
      CREATE TABLE credential (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text NOT NULL CHECK (kind IN ('editor', 'admin', 'api', 'task', 'viewer', 'live')),
        hash bytea NOT NULL UNIQUE,
        name text,
        app_id bigint REFERENCES app ON DELETE CASCADE,
        person_id bigint REFERENCES person ON DELETE CASCADE,
        run_id bigint,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz,
        CHECK (CASE WHEN kind IN ('editor', 'admin') THEN app_id IS NULL AND person_id IS NOT NULL
                    ELSE app_id IS NOT NULL END)
      );
      CREATE INDEX credential_app ON credential (app_id);
      CREATE INDEX credential_expiry ON credential (expires_at) WHERE expires_at IS NOT NULL;
      CREATE TABLE audit_entry (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        type text NOT NULL,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        credential_id bigint REFERENCES credential ON DELETE SET NULL,
        action_id bigint,
        data json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX audit_entry_app ON audit_entry (app_id, id DESC);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE audit_entry, credential, app_editor, app, person, organization");
  }
}
