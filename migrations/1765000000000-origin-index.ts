import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index by which the service checks, when a page opens a WebSocket, if any app lists the page's origin. */
export class OriginIndex1765000000000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // Drops the invalid index that an interrupted attempt leaves.
    await this.down(runner);
    await runner.query("CREATE INDEX CONCURRENTLY app_origins ON app USING gin (origins)");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS app_origins");
  }
}
