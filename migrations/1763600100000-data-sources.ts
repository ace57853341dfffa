import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Data sources, their entries and snapshots. Each primary key starts with the app's ID, so that a statement for one app cannot reach rows
 * of another. `data` is the JSON as received, with its order of keys; `doc` is the same data as jsonb for searches.
 */
export class DataSources1763600100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE data_source (
        id integer GENERATED ALWAYS AS IDENTITY UNIQUE,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        organization_id bigint NOT NULL REFERENCES organization ON DELETE CASCADE,
        name text NOT NULL,
        columns jsonb NOT NULL DEFAULT '[]',
        access_rules jsonb NOT NULL DEFAULT '[]',
        hooks jsonb NOT NULL DEFAULT '[]',
        indexes jsonb NOT NULL DEFAULT '[]',
        created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
        updated_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (app_id, id),
        UNIQUE (app_id, name)
      );
      CREATE INDEX data_source_organization ON data_source (organization_id);
      CREATE SEQUENCE data_source_entry_order;
      CREATE TABLE data_source_entry (
        id bigint GENERATED ALWAYS AS IDENTITY,
        app_id bigint NOT NULL,
        data_source_id integer NOT NULL,
        data json NOT NULL CHECK (json_typeof(data) = 'object'),
        doc jsonb NOT NULL GENERATED ALWAYS AS (data::jsonb) STORED,
        "order" double precision NOT NULL DEFAULT nextval('data_source_entry_order'),
        created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
        updated_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (app_id, id),
        FOREIGN KEY (app_id, data_source_id) REFERENCES data_source (app_id, id) ON DELETE CASCADE
      );
      ALTER SEQUENCE data_source_entry_order OWNED BY data_source_entry."order";
      CREATE INDEX data_source_entry_in_order ON data_source_entry (app_id, data_source_id, "order", id);
      CREATE TABLE data_source_version (
        id bigint GENERATED ALWAYS AS IDENTITY,
        app_id bigint NOT NULL,
        data_source_id integer NOT NULL,
        user_id bigint,
        operation text NOT NULL,
        columns jsonb NOT NULL,
        entries integer NOT NULL,
        bytes bigint NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (app_id, id),
        FOREIGN KEY (app_id, data_source_id) REFERENCES data_source (app_id, id) ON DELETE CASCADE
      );
      CREATE INDEX data_source_version_newest ON data_source_version (app_id, data_source_id, id);
      CREATE TABLE data_source_version_part (
        app_id bigint NOT NULL,
        version_id bigint NOT NULL,
        part integer NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (app_id, version_id, part),
        FOREIGN KEY (app_id, version_id) REFERENCES data_source_version (app_id, id) ON DELETE CASCADE
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE data_source_version_part, data_source_version, data_source_entry, data_source");
  }
}
