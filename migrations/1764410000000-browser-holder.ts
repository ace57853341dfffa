import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * A lease that never lapses for the holder of all runs in browsers (`BROWSER_HOLDER`). Processes of the release before end each run whose
 * holder has no lease; without this row they would end runs that a page announced to a newer process. It has no roles: it is no process.
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
