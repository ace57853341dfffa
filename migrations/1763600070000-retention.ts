import type { MigrationInterface, QueryRunner } from "typeorm";

/** Indexes for dropping old task tokens. Each run has such a row, and rows that refer to it must be found without reading whole tables. */
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
