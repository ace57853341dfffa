import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Turns a table into the first partition of a new table with the same name, without copying rows. The new table gets the same indexes and
 * checks. Unique keys without the partition key are impossible there, so the migrations drop them before. Foreign keys are dropped, because
 * each created or dropped partition would lock the referenced tables (apps, people and credentials) against writes. References stay valid:
 * writers have read the app and the credential, apps and people are never deleted, and IDs of credentials are never reused.
 */
const TURN_INTO_PARTITION = `
  CREATE FUNCTION pg_temp.svc_turn_into_partition(target text, key text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      first text := target || '_p1';
      bound text := substring(pg_get_constraintdef((SELECT oid FROM pg_constraint WHERE conrelid = target::regclass
                                                     AND conname = target || '_range')) FROM '\\d+');
      primary_key text;
      indexes text[];
      one record;
      last record;
    BEGIN
      SELECT pg_get_constraintdef(oid) INTO primary_key FROM pg_constraint WHERE conrelid = target::regclass AND contype = 'p';
      indexes := ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = target::regclass AND NOT indisprimary);
      FOR one IN SELECT conname AS name FROM pg_constraint WHERE conrelid = target::regclass AND contype = 'f' LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', target, one.name);
      END LOOP;
      EXECUTE format('ALTER TABLE %I RENAME TO %I', target, first);
      FOR one IN SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = first::regclass LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', one.name, first || substr(one.name, length(target) + 1));
      END LOOP;
      EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY) PARTITION BY RANGE (%I)',
                     target, first, key);
      EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', target, target || '_range');
      IF key = 'id' THEN
        EXECUTE format('SELECT last_value, is_called FROM %s', pg_get_serial_sequence(first, 'id')) INTO last;
        EXECUTE format('ALTER TABLE %I ALTER COLUMN id DROP IDENTITY', first);
        EXECUTE format('CREATE SEQUENCE %I OWNED BY %I.id', target || '_id_seq', target);
        PERFORM setval(target || '_id_seq', last.last_value, last.is_called);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN id SET DEFAULT nextval(%L)', target, target || '_id_seq');
      END IF;
      EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I %s', target, target || '_pkey', primary_key);
      FOR one IN SELECT unnest(indexes) AS text LOOP EXECUTE one.text; END LOOP;
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%s)', target, first, bound);
      EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', first, target || '_range');
      EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%s) TO (MAXVALUE)', target || '_rest', target, bound);
    END
  $$`;

/* Locks the tables. A waiting lock request blocks all later statements, so each attempt gives up after 500 ms and is then repeated. */
const lock = (tables: string) => `
  DO $$
    BEGIN
      FOR attempt IN 1..600 LOOP
        BEGIN
          SET LOCAL lock_timeout = '500ms';
          LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE;
          RETURN;
        EXCEPTION WHEN lock_not_available THEN PERFORM pg_sleep(0.5);
        END;
      END LOOP;
      RAISE EXCEPTION 'the tables % could not be locked for five minutes: a long transaction holds them', '${tables}';
    END
  $$`;

/** Partitions tables by ID. The service creates partitions in advance, and deletes old rows by dropping whole partitions. */
abstract class Partitions implements MigrationInterface {
  protected abstract readonly tables: readonly (readonly [table: string, key: string])[];
  protected abstract readonly before: string;
  protected readonly after: string = "SELECT";

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TURN_INTO_PARTITION);
    // Dropping a foreign key also locks the table to which it refers.
    const referred = ["app", "person", "credential"];
    await runner.query(lock([...this.tables.map(([table]) => table), ...referred].join(", ")));
    await runner.query(this.before);
    for (const [table, key] of this.tables) {
      await runner.query("SELECT pg_temp.svc_turn_into_partition($1, $2)", [table, key]);
    }
    await runner.query(this.after);
    await runner.query("DROP FUNCTION pg_temp.svc_turn_into_partition");
  }

  async down(): Promise<void> {
    throw new Error("partitions are not made one table again: restore the backup of before");
  }
}

/** Partitions the execution log. Each table has its own migration, so that only one table is locked at a time. */
export class PartitionsOfEntries1763600180200 extends Partitions {
  protected readonly tables = [["execution_log", "id"]] as const;
  protected readonly before = `
    -- A run has one entry, which the statement that ends it writes: it says so in the run's row.
    ALTER TABLE execution_log DROP CONSTRAINT execution_log_run_id_key`;
}

export class PartitionsOfEvents1763600180300 extends Partitions {
  protected readonly tables = [["log_event", "id"]] as const;
  protected readonly before = "SELECT";
}

export class PartitionsOfTrail1763600180400 extends Partitions {
  protected readonly tables = [["audit_entry", "id"]] as const;
  protected readonly before = "SELECT";
}

/** Runs with their console lines. Their idempotency keys, which are unique over all partitions, are in a separate table. */
export class PartitionsOfRuns1763600180500 extends Partitions {
  protected readonly tables = [
    ["console_line", "run_id"],
    ["run", "id"],
  ] as const;
  protected readonly before = `
    CREATE TABLE run_key (
      action_id bigint NOT NULL,
      credential_id bigint NOT NULL REFERENCES credential ON DELETE CASCADE,
      key text NOT NULL,
      run_id bigint NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (action_id, credential_id, key)
    );
    CREATE INDEX run_key_age ON run_key (created_at);
    CREATE INDEX run_key_credential ON run_key (credential_id);
    INSERT INTO run_key (action_id, credential_id, key, run_id, created_at)
      SELECT action_id, credential_id, idempotency_key, id, queued_at FROM run
       WHERE idempotency_key IS NOT NULL AND credential_id IS NOT NULL AND queued_at > now() - interval '24 hours';
    DROP INDEX run_idempotency, run_tick, run_unfinished;
    ALTER TABLE run ADD COLUMN log_id bigint`;
}
