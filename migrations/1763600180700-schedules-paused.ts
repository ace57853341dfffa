import type { MigrationInterface, QueryRunner } from "typeorm";

/** Time at which an app's schedules were paused; null if they are not paused. */
export class SchedulesPaused1763600180700 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app ADD COLUMN schedules_paused_at timestamptz");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE app DROP COLUMN schedules_paused_at");
  }
}
