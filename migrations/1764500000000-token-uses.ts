import type { MigrationInterface, QueryRunner } from "typeorm";

/** Tokens say when and from which address they were last used, and whether a warning of their expiry was given. */
export class TokenUses1764500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE credential ADD COLUMN last_used_at timestamptz, ADD COLUMN last_used_address text,
        ADD COLUMN expiry_warned_at timestamptz`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      "ALTER TABLE credential DROP COLUMN last_used_at, DROP COLUMN last_used_address, DROP COLUMN expiry_warned_at",
    );
  }
}
