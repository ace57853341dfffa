import type { MigrationInterface, QueryRunner } from "typeorm";

/** Queued runs by app: whose turn it is, and how many an app has, are found without looking at all that wait. */
export class QueueTurns1763600085000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("CREATE INDEX run_queued ON run (app_id, id) WHERE state = 'queued'");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX run_queued");
  }
}
