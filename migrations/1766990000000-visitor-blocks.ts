import type { MigrationInterface, QueryRunner } from "typeorm";

/** Hash of the network address range of the visitor who subscribed a device, by which the service limits devices. */
export class VisitorBlocks1766990000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE push_subscription ADD COLUMN visitor_block bytea");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE push_subscription DROP COLUMN visitor_block");
  }
}
