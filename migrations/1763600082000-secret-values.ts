import type { MigrationInterface, QueryRunner } from "typeorm";

/** Stores replaced setting values while runs may contain them. Each change of private and protected settings has a version number. */
export class SecretValues1763600082000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Grows with each change of an underscore setting. No replaced value up to secrets_forgotten is known any more.
      ALTER TABLE app
        ADD COLUMN secrets_version bigint NOT NULL DEFAULT 0,
        ADD COLUMN secrets_forgotten bigint NOT NULL DEFAULT 0;
      ALTER TABLE setting ADD COLUMN not_secret boolean NOT NULL DEFAULT false
        CHECK (NOT not_secret OR (left(key, 1) = '_' AND left(key, 2) <> '__'));
      ALTER TABLE app_version_setting ADD COLUMN not_secret boolean NOT NULL DEFAULT false;
      CREATE TABLE replaced_setting (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        key text NOT NULL,
        sealed bytea NOT NULL,
        version bigint NOT NULL,
        replaced_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX replaced_setting_app ON replaced_setting (app_id, version);

      CREATE FUNCTION svc_secrets_written() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE app SET secrets_version = secrets_version + 1
         WHERE id IN (SELECT app_id FROM written WHERE left(key, 1) = '_');
        RETURN NULL;
      END $$;
      -- At most 256 KB and an hour of replaced values are kept; a run that needs more fails.
      CREATE FUNCTION svc_secrets_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        WITH changed AS (
          UPDATE app SET secrets_version = secrets_version + 1
           WHERE id IN (SELECT app_id FROM replaced WHERE left(key, 1) = '_')
          RETURNING id, secrets_version)
        INSERT INTO replaced_setting (app_id, key, sealed, version)
        SELECT app_id, key, sealed, secrets_version FROM replaced JOIN changed ON changed.id = app_id
         WHERE left(key, 1) = '_' AND NOT not_secret;
        WITH sized AS (
          SELECT ctid AS place, replaced_at,
                 sum(octet_length(sealed)) OVER (PARTITION BY app_id ORDER BY version DESC) AS bytes
            FROM replaced_setting WHERE app_id IN (SELECT app_id FROM replaced)),
        forgotten AS (
          DELETE FROM replaced_setting
           WHERE ctid IN (SELECT place FROM sized
                           WHERE bytes > 262144 OR replaced_at < now() - interval '1 hour')
          RETURNING app_id, version)
        UPDATE app SET secrets_forgotten = greatest(secrets_forgotten, last)
          FROM (SELECT app_id, max(version) AS last FROM forgotten GROUP BY app_id) f WHERE app.id = f.app_id;
        RETURN NULL;
      END $$;
      CREATE TRIGGER secrets_inserted AFTER INSERT ON setting REFERENCING NEW TABLE AS written
        FOR EACH STATEMENT EXECUTE FUNCTION svc_secrets_written();
      CREATE TRIGGER secrets_updated AFTER UPDATE ON setting REFERENCING OLD TABLE AS replaced
        FOR EACH STATEMENT EXECUTE FUNCTION svc_secrets_replaced();
      CREATE TRIGGER secrets_deleted AFTER DELETE ON setting REFERENCING OLD TABLE AS replaced
        FOR EACH STATEMENT EXECUTE FUNCTION svc_secrets_replaced();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TRIGGER secrets_inserted ON setting;
      DROP TRIGGER secrets_updated ON setting;
      DROP TRIGGER secrets_deleted ON setting;
      DROP FUNCTION svc_secrets_written, svc_secrets_replaced;
      DROP TABLE replaced_setting;
      ALTER TABLE app_version_setting DROP COLUMN not_secret;
      ALTER TABLE setting DROP COLUMN not_secret;
      ALTER TABLE app DROP COLUMN secrets_version, DROP COLUMN secrets_forgotten;
    `);
  }
}
