import type { MigrationInterface, QueryRunner } from "typeorm";

/** Jitter of schedules: a delay in milliseconds after the scheduled time. `schedule.next_tick` includes this delay. */
export class ScheduleJitter1764600003100 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE action ADD COLUMN jitter_seconds integer;
      ALTER TABLE schedule ADD COLUMN offset_ms integer;
      -- For processes of the release before a wider check would be a new demand.
      ALTER TABLE run DROP CONSTRAINT run_trigger_check;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE run ADD CONSTRAINT run_trigger_check
        CHECK (trigger IN ('manual', 'schedule', 'log', 'analytics', 'http')) NOT VALID;
      ALTER TABLE schedule DROP COLUMN offset_ms;
      ALTER TABLE action DROP COLUMN jitter_seconds;
    `);
  }
}
