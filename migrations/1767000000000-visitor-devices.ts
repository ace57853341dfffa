import type { MigrationInterface, QueryRunner } from "typeorm";

const INDEXES = [
  ["push_subscription_visitor", "(app_id, id) WHERE reader LIKE 'credential:%'"],
  ["push_subscription_visitor_block", "(app_id, visitor_block, id) WHERE visitor_block IS NOT NULL"],
] as const;

/** Indexes by which the service finds the devices of visitors who are not signed in, of an app and of an address range. */
export class VisitorDevices1767000000000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, columns] of INDEXES) {
      // An interrupted attempt can leave an invalid index.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON push_subscription ${columns}`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  }
}
