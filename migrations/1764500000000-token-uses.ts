import type { MigrationInterface, QueryRunner } from "typeorm";

/** Time and address of the last use of a token, and whether a warning of its expiry was logged. */
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
