import type { MigrationInterface, QueryRunner } from "typeorm";

/** The bounds on visitors' sessions read those of one address, and all of one app. */
const INDEXES = {
  credential_visitor_block: "(app_id, visitor_block, id)",
  credential_visitor: "(app_id, id)",
} as const;

export class VisitorIndexes1764600000200 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, columns] of Object.entries(INDEXES)) {
      // An interrupted attempt leaves an invalid index.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON credential ${columns} WHERE visitor_block IS NOT NULL`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of Object.keys(INDEXES)) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  }
}
