import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index with which the upgrade to a websocket finds out whether any app lists the page's origin. */
export class OriginIndex1765000000000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An interrupted attempt leaves an invalid index.
    await this.down(runner);
    await runner.query("CREATE INDEX CONCURRENTLY app_origins ON app USING gin (origins)");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS app_origins");
  }
}
