import type { MigrationInterface, QueryRunner } from "typeorm";

/** Invitations to organizations and apps. An invitation is pending as long as its one-time link is valid. */
export class Invitations1764200000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE invitation (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        link_id bigint NOT NULL UNIQUE REFERENCES one_time_link ON DELETE CASCADE,
        organization_id bigint NOT NULL REFERENCES organization ON DELETE CASCADE,
        app_id bigint REFERENCES app ON DELETE CASCADE,
        email text NOT NULL,
        role text NOT NULL CHECK (role IN ('owner', 'admin', 'editor', 'operator', 'reader'))
      );
      CREATE INDEX invitation_organization ON invitation (organization_id);
      CREATE INDEX invitation_app ON invitation (app_id) WHERE app_id IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE invitation");
  }
}
