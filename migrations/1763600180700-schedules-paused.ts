import type { MigrationInterface, QueryRunner } from "typeorm";

/** Time since when an app's schedules are paused; null if they are not. */
export class SchedulesPaused1763600180700 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app ADD COLUMN schedules_paused_at timestamptz");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app DROP COLUMN schedules_paused_at");
  }
}
