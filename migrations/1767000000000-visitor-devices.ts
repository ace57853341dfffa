import type { MigrationInterface, QueryRunner } from "typeorm";

/** Hash of the network address range of the visitor who subscribed a device, by which the service limits devices. */
export class VisitorDevices1767000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE push_subscription ADD COLUMN visitor_block bytea;
      CREATE INDEX push_subscription_visitor ON push_subscription (app_id, id) WHERE reader LIKE 'credential:%';
      CREATE INDEX push_subscription_visitor_block ON push_subscription (app_id, visitor_block, id)
        WHERE visitor_block IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE push_subscription DROP COLUMN visitor_block");
  }
}
