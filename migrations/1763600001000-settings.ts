import type { MigrationInterface, QueryRunner } from "typeorm";

/** Settings, and snapshots of apps. Each setting has its own row, so that writers of different keys do not wait for each other. */
export class Settings1763600001000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- One row: the fingerprint of the key that wraps every app's data key. Its lock orders rotation and new data keys.
      CREATE TABLE settings_key (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        fingerprint text NOT NULL
      );
      CREATE TABLE setting (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        key text NOT NULL,
        value text,
        sealed bytea,
        updated_at timestamptz NOT NULL DEFAULT now(),
        updated_by bigint REFERENCES person ON DELETE SET NULL,
        PRIMARY KEY (app_id, key),
        CHECK (CASE WHEN left(key, 1) = '_' THEN value IS NULL AND sealed IS NOT NULL
                    ELSE value IS NOT NULL AND sealed IS NULL END)
      );
      CREATE TABLE app_version (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        person_id bigint REFERENCES person ON DELETE SET NULL,
        data json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX app_version_app ON app_version (app_id, id DESC);
      CREATE TABLE app_version_setting (
        app_version_id bigint NOT NULL REFERENCES app_version ON DELETE CASCADE,
        key text NOT NULL,
        value text,
        sealed bytea,
        PRIMARY KEY (app_version_id, key)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE app_version_setting, app_version, setting, settings_key");
  }
}
