import type { MigrationInterface, QueryRunner } from "typeorm";

/** Indexes that the bounds on visitors' sessions read: those of one address, and all of one app. */
export class VisitorsIndexes1765900000000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An interrupted attempt leaves an invalid index.
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
