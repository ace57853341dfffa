import type { MigrationInterface, QueryRunner } from "typeorm";

/** Indexes for the limits on visitors' sessions: per block of network addresses, and per app. */
export class VisitorsIndexes1765900000000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // Drops the invalid index that an interrupted attempt leaves.
    await this.down(runner);
    await runner.query(`CREATE INDEX CONCURRENTLY credential_visitor_block ON credential (app_id, visitor_block, id)
      WHERE visitor_block IS NOT NULL`);
    await runner.query(
      "CREATE INDEX CONCURRENTLY credential_visitor ON credential (app_id, id) WHERE visitor_block IS NOT NULL",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_visitor");
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_visitor_block");
  }
}
