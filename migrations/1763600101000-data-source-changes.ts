import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Columns and tables for writing entries: number and size of entries, recent changes for subscribers, and sessions of app users, whose
 * accounts are entries.
 */
export class DataSourceChanges1763600101000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Columns that a hook hashes or ever hashed: nobody reads them.
      ALTER TABLE data_source ADD COLUMN hashed_columns jsonb NOT NULL DEFAULT '[]';
      -- Narrow, and written last in each transaction: its lock also puts the changes of one data source in order.
      CREATE TABLE data_source_tally (
        app_id bigint NOT NULL,
        data_source_id integer NOT NULL,
        entries bigint NOT NULL DEFAULT 0,
        bytes bigint NOT NULL DEFAULT 0,
        -- Changes up to this one are known to nobody any more.
        forgotten bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (app_id, data_source_id),
        FOREIGN KEY (app_id, data_source_id) REFERENCES data_source (app_id, id) ON DELETE CASCADE
      ) WITH (fillfactor = 50);
      CREATE TABLE data_source_change (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL,
        data_source_id integer NOT NULL,
        -- Too much changed to be told entry by entry.
        bulk boolean NOT NULL,
        inserted bigint[] NOT NULL,
        -- Updated and removed entries as they were: [{id, data, order, createdAt, updatedAt, removed}].
        replaced json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        FOREIGN KEY (app_id, data_source_id) REFERENCES data_source (app_id, id) ON DELETE CASCADE
      );
      CREATE INDEX data_source_change_newest ON data_source_change (app_id, data_source_id, id);
      CREATE INDEX data_source_change_age ON data_source_change (created_at);
      -- proof: a hash of the values that the user signed in by; it holds while the entry still has them.
      CREATE TABLE app_user_session (
        credential_id bigint PRIMARY KEY REFERENCES credential ON DELETE CASCADE,
        app_id bigint NOT NULL,
        data_source_id integer NOT NULL,
        entry_id bigint NOT NULL,
        columns jsonb NOT NULL,
        proof bytea NOT NULL,
        locale text,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        FOREIGN KEY (app_id, data_source_id) REFERENCES data_source (app_id, id) ON DELETE CASCADE
      );
      CREATE INDEX app_user_session_data_source ON app_user_session (app_id, data_source_id);
      -- Attempts to sign in that failed or are under way; subject is a hash of whom or from where.
      CREATE TABLE app_user_failure (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        subject bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp()
      );
      CREATE INDEX app_user_failure_subject ON app_user_failure (subject, created_at);
      CREATE INDEX app_user_failure_age ON app_user_failure (created_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE app_user_failure, app_user_session, data_source_change, data_source_tally;
      ALTER TABLE data_source DROP COLUMN hashed_columns;
    `);
  }
}
