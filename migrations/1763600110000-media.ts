import type { MigrationInterface, QueryRunner } from "typeorm";

/** Folders and files of an app, and the blobs in the media store that contain the files' content. */
export class Media1763600110000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- What this database calls its own part of a folder or bucket that others may use too.
      CREATE TABLE media_store (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        space text NOT NULL
      );
      INSERT INTO media_store (space) VALUES (left(replace(gen_random_uuid()::text, '-', ''), 16));

      -- What an app's blobs take, those that are being received too: changed with each row of media_blob.
      CREATE TABLE media_usage (
        app_id bigint PRIMARY KEY REFERENCES app ON DELETE CASCADE,
        bytes bigint NOT NULL CHECK (bytes >= 0)
      );

      -- A blob belongs to a file while held_until is null. Until then its process says from time to time that it is at work; when the
      -- time has passed, whoever finds the row removes the blob and then the row.
      CREATE TABLE media_blob (
        key text PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        bytes bigint NOT NULL,
        held_until timestamptz,
        -- Since when a sweep has missed it in the store.
        lost_at timestamptz
      );
      CREATE INDEX media_blob_held ON media_blob (held_until) WHERE held_until IS NOT NULL;

      CREATE TABLE media_folder (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        parent_id bigint,
        name text NOT NULL,
        access_rules json,
        user_id bigint,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (app_id, id),
        FOREIGN KEY (app_id, parent_id) REFERENCES media_folder (app_id, id)
      );
      CREATE UNIQUE INDEX media_folder_name ON media_folder (app_id, coalesce(parent_id, 0), name);

      CREATE TABLE media_file (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        folder_id bigint,
        name text NOT NULL,
        content_type text NOT NULL,
        bytes bigint NOT NULL,
        checksum text NOT NULL,
        width integer,
        height integer,
        blob_key text NOT NULL UNIQUE REFERENCES media_blob,
        thumbnail_key text UNIQUE REFERENCES media_blob,
        access_rules json,
        user_id bigint,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        FOREIGN KEY (app_id, folder_id) REFERENCES media_folder (app_id, id)
      );
      CREATE INDEX media_file_folder ON media_file (app_id, coalesce(folder_id, 0), name, id);

      -- The rules of the nearest folder, from this one upwards, that has any of its own.
      CREATE FUNCTION svc_media_rules(folder bigint) RETURNS json LANGUAGE sql STABLE AS $$
        WITH RECURSIVE up AS (
          SELECT parent_id, access_rules, 0 AS step FROM media_folder WHERE id = folder
          UNION ALL
          SELECT above.parent_id, above.access_rules, step + 1
            FROM up JOIN media_folder AS above ON above.id = up.parent_id WHERE up.access_rules IS NULL)
        SELECT access_rules FROM up WHERE access_rules IS NOT NULL ORDER BY step LIMIT 1
      $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP FUNCTION svc_media_rules(bigint);
      DROP TABLE media_file, media_folder, media_blob, media_usage, media_store;
    `);
  }
}
