import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index by which PostgreSQL finds the grants to delete when a token is deleted with which programs were authorized. */
export class GrantsOfMakers1766300000100 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // Drops the invalid index that an interrupted attempt leaves.
    await this.down(runner);
    await runner.query(
      "CREATE INDEX CONCURRENTLY oauth_grant_maker ON oauth_grant (maker_id) WHERE maker_id IS NOT NULL",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS oauth_grant_maker");
  }
}
