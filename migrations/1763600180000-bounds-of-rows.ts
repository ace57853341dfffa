import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Adds constraints that limit the IDs of the existing rows, which become the first partition. The constraints are NOT VALID, so that
 * adding them blocks no writes. The next migration validates them.
 */
export class BoundsOfRows1763600180000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DO $$
        DECLARE
          one record;
          last bigint;
        BEGIN
          FOR one IN SELECT * FROM (VALUES ('console_line', 'run', 'run_id'), ('run', 'run', 'id'), ('log_event', 'log_event', 'id'),
                                           ('execution_log', 'execution_log', 'id'), ('audit_entry', 'audit_entry', 'id'))
                                   AS given (name, numbered, key) LOOP
            EXECUTE format('SELECT last_value FROM %s', pg_get_serial_sequence(one.numbered, 'id')) INTO last;
            -- Room for what is written until it is a partition.
            EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (%I < %s) NOT VALID',
                           one.name, one.name || '_range', one.key, (last / 100000 + 3) * 100000);
          END LOOP;
        END
      $$`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE console_line DROP CONSTRAINT console_line_range;
      ALTER TABLE run DROP CONSTRAINT run_range;
      ALTER TABLE log_event DROP CONSTRAINT log_event_range;
      ALTER TABLE execution_log DROP CONSTRAINT execution_log_range;
      ALTER TABLE audit_entry DROP CONSTRAINT audit_entry_range;
    `);
  }
}
