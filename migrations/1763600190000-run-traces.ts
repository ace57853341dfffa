import type { MigrationInterface, QueryRunner } from "typeorm";

/** Trace context of each queued run, stored until the run starts. */
export class RunTraces1763600190000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Written only where a collector of traces is named. No foreign key: a run may be gone before its trace is.
      CREATE TABLE run_trace (
        run_id bigint PRIMARY KEY,
        traceparent text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX run_trace_created ON run_trace (created_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE run_trace");
  }
}
