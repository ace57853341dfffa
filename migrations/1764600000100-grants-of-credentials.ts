import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index by which the service finds the credentials of a grant when a program's access is revoked. */
export class GrantsOfCredentials1764600000100 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // Drops the invalid index that an interrupted attempt leaves.
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_grant");
    await runner.query(
      "CREATE INDEX CONCURRENTLY credential_grant ON credential (grant_id) WHERE grant_id IS NOT NULL",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_grant");
  }
}
