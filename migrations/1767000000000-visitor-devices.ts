import type { MigrationInterface, QueryRunner } from "typeorm";

const INDEXES = [
  ["push_subscription_visitor", "(app_id, id) WHERE reader LIKE 'credential:%'"],
  ["push_subscription_visitor_block", "(app_id, visitor_block, id) WHERE visitor_block IS NOT NULL"],
] as const;

/** Hash of the network address range of the visitor who subscribed a device, by which the service limits devices. */
export class VisitorDevices1767000000000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An interrupted attempt leaves the column, and perhaps invalid indexes.
    await runner.query("ALTER TABLE push_subscription ADD COLUMN IF NOT EXISTS visitor_block bytea");
    for (const [name, columns] of INDEXES) {
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON push_subscription ${columns}`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await runner.query("ALTER TABLE push_subscription DROP COLUMN visitor_block");
  }
}
