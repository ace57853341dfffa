import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * A data source says whether it holds the app's users. Marks those with a hashed column that pages have signed in by, and writes a line
 * in the audit log for each. Sign-ins by any other data source count no more.
 */
export class AppUsers1764000400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE data_source ADD COLUMN is_users boolean NOT NULL DEFAULT false;
      WITH marked AS (
        UPDATE data_source SET is_users = true
         WHERE hashed_columns <> '[]'
           AND EXISTS (SELECT FROM app_user_session AS session
                        WHERE session.app_id = data_source.app_id AND session.data_source_id = data_source.id)
        RETURNING app_id, id, name)
      INSERT INTO audit_entry (app_id, type, data)
      SELECT app_id, 'dataSource.update', json_build_object('id', id, 'name', name, 'fields', json_build_array('isUsers'), 'by', 'upgrade')
        FROM marked ORDER BY app_id, id;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE data_source DROP COLUMN is_users");
  }
}
