import type { MigrationInterface, QueryRunner } from "typeorm";

/** Git repositories from which apps take their definitions, and the commit of each version that came from one. */
export class GitConnections1766600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE app_git (
        app_id bigint PRIMARY KEY REFERENCES app ON DELETE CASCADE,
        provider text NOT NULL,
        url text NOT NULL,
        branch text NOT NULL,
        folder text NOT NULL,
        tag_pattern text,
        prune boolean NOT NULL,
        username text NOT NULL,
        sealed_token bytea,
        sealed_secret bytea NOT NULL,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        credential_id bigint REFERENCES credential ON DELETE SET NULL,
        branch_pulls bigint NOT NULL DEFAULT 0,
        last_pull json,
        updated_at timestamptz NOT NULL DEFAULT now());
      CREATE INDEX app_git_person ON app_git (person_id) WHERE person_id IS NOT NULL;
      CREATE INDEX app_git_credential ON app_git (credential_id) WHERE credential_id IS NOT NULL;
      ALTER TABLE action_version ADD COLUMN commit_id text;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE action_version DROP COLUMN commit_id; DROP TABLE app_git");
  }
}
