import type { MigrationInterface, QueryRunner } from "typeorm";

/** The upgrade to a websocket looks up whether any app lists the page's origin. */
export class OriginIndex1765000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("CREATE INDEX app_origins ON app USING gin (origins)");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX app_origins");
  }
}
