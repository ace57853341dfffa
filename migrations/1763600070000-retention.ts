import type { MigrationInterface, QueryRunner } from "typeorm";

/** Indexes by which PostgreSQL finds the rows that refer to a token, when the service deletes the tokens of old runs. */
export class Retention1763600070000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE INDEX run_credential ON run (credential_id) WHERE credential_id IS NOT NULL;
      CREATE INDEX audit_entry_credential ON audit_entry (credential_id) WHERE credential_id IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX run_credential, audit_entry_credential");
  }
}
