import type { MigrationInterface, QueryRunner } from "typeorm";

/** Routes of HTTP triggers, their secrets, the events that they have received, and the requests that they have rejected. */
export class HttpTriggers1764200150000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // The new check also accepts all earlier values, so existing rows need no validation.
    await runner.query(`
      ALTER TABLE run DROP CONSTRAINT run_trigger_check;
      ALTER TABLE run ADD CONSTRAINT run_trigger_check
        CHECK (trigger IN ('manual', 'schedule', 'log', 'analytics', 'http')) NOT VALID;

      CREATE TABLE http_route (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        is_draft boolean NOT NULL,
        shape text COLLATE "C" NOT NULL,
        method text NOT NULL,
        action_id bigint NOT NULL REFERENCES action ON DELETE CASCADE,
        settings json NOT NULL,
        CONSTRAINT http_route_pkey PRIMARY KEY (app_id, is_draft, shape, method)
      );
      CREATE INDEX http_route_action ON http_route (action_id);

      CREATE TABLE http_secret (
        action_id bigint PRIMARY KEY REFERENCES action ON DELETE CASCADE,
        sealed bytea NOT NULL
      );

      CREATE TABLE http_event (
        action_id bigint NOT NULL REFERENCES action ON DELETE CASCADE,
        key bytea NOT NULL,
        run_id bigint NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (action_id, key)
      );
      CREATE INDEX http_event_age ON http_event (created_at);

      CREATE TABLE http_refusal (
        action_id bigint NOT NULL REFERENCES action ON DELETE CASCADE,
        status text NOT NULL,
        reason text NOT NULL,
        refused bigint NOT NULL,
        last_at timestamptz NOT NULL,
        last_address text,
        PRIMARY KEY (action_id, status, reason)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE http_refusal, http_event, http_secret, http_route");
    await runner.query(`
      ALTER TABLE run DROP CONSTRAINT run_trigger_check;
      ALTER TABLE run ADD CONSTRAINT run_trigger_check
        CHECK (trigger IN ('manual', 'schedule', 'log', 'analytics')) NOT VALID;
    `);
  }
}
