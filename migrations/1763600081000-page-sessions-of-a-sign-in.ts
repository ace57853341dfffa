import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * A page's token ends with the sign-in in which it was made, and a token of a debug page names its action. Earlier pages had theirs in a
 * cookie: these tokens end now, so that no browser counts as a visitor of an app when it opens Studio.
 */
export class PageSessionsOfASignIn1763600081000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE credential
        ADD COLUMN parent_id bigint REFERENCES credential (id) ON DELETE CASCADE,
        ADD COLUMN action_id bigint;
      CREATE INDEX credential_parent ON credential (parent_id) WHERE parent_id IS NOT NULL;
      UPDATE credential SET revoked_at = now() WHERE page_session AND revoked_at IS NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE credential DROP COLUMN parent_id, DROP COLUMN action_id");
  }
}
