import type { MigrationInterface, QueryRunner } from "typeorm";

/** Token with which a person authorized a program; null for a sign-in session. Deleting the token deletes the grant. */
export class GrantMakers1766300000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE oauth_grant ADD COLUMN maker_id bigint REFERENCES credential ON DELETE CASCADE");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE oauth_grant DROP COLUMN maker_id");
  }
}
