import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Adds `isUsers` to data sources: app users can sign in only by data sources that have it. Sets it for data sources that have a hashed
 * column and an unexpired sign-in. Sign-ins expire after 12 hours, so apps without recent visitors have none, and their data sources stay
 * unmarked. The audit log gets an entry for each data source with a hashed column, marked or unmarked.
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
      INSERT INTO audit_entry (app_id, type, data)
      SELECT app_id, 'dataSource.notUsers', json_build_object('id', id, 'name', name, 'by', 'upgrade', 'note',
             'has a hashed column and is not isUsers: pages cannot sign in by it until an editor sets isUsers')
        FROM data_source WHERE hashed_columns <> '[]' AND NOT is_users ORDER BY app_id, id;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE data_source DROP COLUMN is_users");
  }
}
