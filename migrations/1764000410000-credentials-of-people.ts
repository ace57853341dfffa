import type { MigrationInterface, QueryRunner } from "typeorm";

/** A log event looks up whether a person has a token of the app. */
export class CredentialsOfPeople1764000410000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("CREATE INDEX credential_person ON credential (person_id, app_id) WHERE person_id IS NOT NULL");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX credential_person");
  }
}
