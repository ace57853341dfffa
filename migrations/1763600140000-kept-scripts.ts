import type { MigrationInterface, QueryRunner } from "typeorm";

/** Scripts of dependencies by the hash of their content, the actions and versions that use them, and recently chosen npm versions. */
export class KeptScripts1763600140000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- sha256: of source, hexadecimal. names: what it uses of its surroundings; null: nobody has looked. parts: the packages that it is made of.
      CREATE TABLE kept_script (
        sha256 text PRIMARY KEY,
        source bytea NOT NULL,
        bytes integer GENERATED ALWAYS AS (octet_length(source)) STORED,
        package text,
        version text,
        licence text,
        global text,
        names json,
        parts json NOT NULL DEFAULT '[]',
        touched_at timestamptz NOT NULL DEFAULT now()
      );
      ALTER TABLE kept_script ALTER COLUMN source SET STORAGE EXTERNAL;
      CREATE INDEX kept_script_touched ON kept_script (touched_at);
      CREATE TABLE kept_script_use (
        sha256 text NOT NULL REFERENCES kept_script,
        action_id bigint REFERENCES action ON DELETE CASCADE,
        action_version_id bigint REFERENCES action_version ON DELETE CASCADE,
        CHECK ((action_id IS NULL) <> (action_version_id IS NULL))
      );
      CREATE INDEX kept_script_use_script ON kept_script_use (sha256);
      CREATE INDEX kept_script_use_action ON kept_script_use (action_id) WHERE action_id IS NOT NULL;
      CREATE INDEX kept_script_use_version ON kept_script_use (action_version_id) WHERE action_version_id IS NOT NULL;
      -- spec: a name with a version, range or tag, as the registry was asked.
      CREATE TABLE package_choice (
        registry text NOT NULL,
        spec text NOT NULL,
        sha256 text NOT NULL REFERENCES kept_script ON DELETE CASCADE,
        chosen_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (registry, spec)
      );
      CREATE INDEX package_choice_script ON package_choice (sha256);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE package_choice, kept_script_use, kept_script");
  }
}
