import type { MigrationInterface, QueryRunner } from "typeorm";

/** Index with which a log event finds out whether a person has a token of the app. */
export class CredentialsOfPeople1764000410000 implements MigrationInterface {
  /** PostgreSQL builds an index without blocking writes only outside a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An interrupted attempt leaves an invalid index.
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_person");
    await runner.query(
      "CREATE INDEX CONCURRENTLY credential_person ON credential (person_id, app_id) WHERE person_id IS NOT NULL",
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX CONCURRENTLY IF EXISTS credential_person");
  }
}
