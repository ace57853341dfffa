import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * The IDs of events that HTTP triggers received remain when a live version is removed, so that the service recognizes repeats after the
 * action is published again.
 */
export class HttpEventsOfActions1767400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE http_event DROP CONSTRAINT http_event_action_id_fkey");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      "DELETE FROM http_event WHERE NOT EXISTS (SELECT FROM action WHERE action.id = http_event.action_id)",
    );
    await runner.query(
      "ALTER TABLE http_event ADD CONSTRAINT http_event_action_id_fkey FOREIGN KEY (action_id) REFERENCES action ON DELETE CASCADE",
    );
  }
}
