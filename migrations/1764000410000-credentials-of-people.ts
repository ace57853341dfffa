import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index by which the service checks, for a log event, if a person has a token for the app. */
export class CredentialsOfPeople1764000410000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // Drops the invalid index that an interrupted attempt leaves.
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_person");
    await runner.query(
      "CREATE INDEX CONCURRENTLY credential_person ON credential (person_id, app_id) WHERE person_id IS NOT NULL",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_person");
  }
}
