import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Links a page's token to the sign-in that created it, so that both end together, and a debug page's token to its action. Revokes the
 * existing tokens of pages: they are in cookies, so the service would treat an editor who opens Studio as a visitor of an app.
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
