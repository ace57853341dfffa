import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * The row of a run contains the trace context of the request that called the action. Processes of the previous release still write the
 * table `run_trace`, which the next release can drop.
 */
export class TraceContextOfRuns1767500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE run ADD COLUMN traceparent text");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE run DROP COLUMN traceparent");
  }
}
