import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index with which the end of a program's access ends the credentials of its grant. */
export class GrantsOfCredentials1764600000100 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An interrupted attempt leaves an invalid index.
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_grant");
    await runner.query(
      "CREATE INDEX CONCURRENTLY credential_grant ON credential (grant_id) WHERE grant_id IS NOT NULL",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_grant");
  }
}
