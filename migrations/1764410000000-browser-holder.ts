import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Lease that never expires, for `BROWSER_HOLDER_ID`, the holder of all runs in browsers. Without it, processes of the previous release would
 * end these runs, because they end each run whose holder has no lease. The row has no roles, because no process has this ID.
 */
export class BrowserHolder1764410000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      INSERT INTO instance (id, roles, lease_until) VALUES ('00000000-0000-4000-8000-0000000c11e7', '{}', 'infinity')
      ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DELETE FROM instance WHERE id = '00000000-0000-4000-8000-0000000c11e7'");
  }
}
