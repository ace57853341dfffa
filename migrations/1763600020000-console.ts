import type { MigrationInterface, QueryRunner } from "typeorm";

/** Console lines of a run, and the hosts that it contacted. They are deleted with the run. */
export class Console1763600020000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE console_line (
        run_id bigint NOT NULL REFERENCES run ON DELETE CASCADE,
        seq integer NOT NULL,
        level text NOT NULL,
        at timestamptz NOT NULL,
        text text NOT NULL,
        PRIMARY KEY (run_id, seq)
      );
      ALTER TABLE run ADD hosts text[] NOT NULL DEFAULT '{}';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE console_line; ALTER TABLE run DROP hosts");
  }
}
