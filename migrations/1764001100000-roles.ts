import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Roles of people in organizations and on apps, and scopes of API tokens. Editors of an app stay in `app_editor`, the only table of roles
 * that processes of the previous release read and write. These processes ignore all other roles. People with a valid administrator token
 * become owners of their organization.
 */
export class Roles1764001100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE organization_member (
        organization_id bigint NOT NULL REFERENCES organization ON DELETE CASCADE,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        role text NOT NULL CHECK (role IN ('owner', 'admin', 'editor', 'operator', 'reader')),
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (organization_id, person_id)
      );
      CREATE INDEX organization_member_person ON organization_member (person_id);
      CREATE TABLE app_member (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        person_id bigint NOT NULL REFERENCES person ON DELETE CASCADE,
        role text NOT NULL CHECK (role IN ('owner', 'admin', 'operator', 'reader')),
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (app_id, person_id)
      );
      CREATE INDEX app_member_person ON app_member (person_id);
      ALTER TABLE credential ADD COLUMN scopes text[];
      CREATE VIEW app_role AS
        SELECT app_id, person_id, role, false AS of_organization FROM app_member
        UNION ALL SELECT app_id, person_id, 'editor', false FROM app_editor
        UNION ALL SELECT app.id, person_id, role, true FROM organization_member JOIN app USING (organization_id);
      INSERT INTO organization_member (organization_id, person_id, role)
        SELECT organization_id, id, 'owner' FROM person
         WHERE EXISTS (SELECT FROM credential c WHERE c.person_id = person.id AND c.kind = 'admin' AND c.revoked_at IS NULL
                         AND (c.expires_at IS NULL OR c.expires_at > now()));
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      "DROP VIEW app_role; DROP TABLE app_member, organization_member; ALTER TABLE credential DROP COLUMN scopes",
    );
  }
}
