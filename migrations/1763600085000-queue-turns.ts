import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index of queued runs by app. It finds the app whose turn it is, and the runs of an app, without reading the whole queue. */
export class QueueTurns1763600085000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("CREATE INDEX run_queued ON run (app_id, id) WHERE state = 'queued'");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX run_queued");
  }
}
