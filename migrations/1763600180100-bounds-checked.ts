import type { MigrationInterface, QueryRunner } from "typeorm";

/* Indexes to create. Their names are new, so an existing index with such a name is left from an interrupted attempt, and is dropped. */
const INDEXES = [
  ["execution_log_run", "execution_log (run_id)"],
  ["execution_log_failed", "execution_log (app_id, id DESC) WHERE type = 'app.task.failed'"],
  ["run_scheduled_tick", "run (action_id, tick) WHERE tick IS NOT NULL"],
  ["run_live", "run (state, id) WHERE finished_at IS NULL"],
] as const;

/**
 * Validates the constraints and creates the indexes without blocking writes. The table can then become a partition without another read
 * of all rows.
 */
export class BoundsChecked1763600180100 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const table of ["console_line", "run", "log_event", "execution_log", "audit_entry"]) {
      await runner.query(`ALTER TABLE ${table} VALIDATE CONSTRAINT ${table}_range`);
    }
    await runner.query("ALTER TABLE run VALIDATE CONSTRAINT run_payload");
    for (const [name, rows] of INDEXES) {
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${rows}`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  }
}
