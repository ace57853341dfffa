import type { MigrationInterface, QueryRunner } from "typeorm";

/** Alert rules of apps with their state, and messages that are being sent to webhooks. */
export class Alerts1763600190100 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- action_id is a master's; null: the whole app. since: nothing before it counts. told_at: the moments of its last messages.
      CREATE TABLE alert_rule (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        name text NOT NULL,
        condition text NOT NULL CHECK (condition IN ('failed', 'silent', 'skipped', 'queued')),
        action_id bigint REFERENCES action ON DELETE CASCADE,
        failures smallint NOT NULL,
        of smallint NOT NULL,
        minutes integer NOT NULL,
        channel text NOT NULL CHECK (channel IN ('email', 'webhook', 'slack')),
        recipients text[] NOT NULL DEFAULT '{}',
        setting text,
        enabled boolean NOT NULL,
        since timestamptz NOT NULL DEFAULT now(),
        told_at timestamptz[] NOT NULL DEFAULT '{}',
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (app_id, name)
      );
      CREATE INDEX alert_rule_action ON alert_rule (action_id) WHERE action_id IS NOT NULL;
      -- Of one action under a rule, 0 for the app as a whole. outcomes: of its last runs, c or f each. told: people know that it fires.
      CREATE TABLE alert_state (
        rule_id bigint NOT NULL REFERENCES alert_rule ON DELETE CASCADE,
        action_id bigint NOT NULL,
        outcomes text NOT NULL DEFAULT '',
        last_success timestamptz,
        firing boolean NOT NULL DEFAULT false,
        told boolean NOT NULL DEFAULT false,
        fired_at timestamptz,
        reason text,
        run_id bigint,
        PRIMARY KEY (rule_id, action_id)
      );
      CREATE TABLE alert_delivery (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        rule_id bigint NOT NULL REFERENCES alert_rule ON DELETE CASCADE,
        channel text NOT NULL,
        setting text,
        body json NOT NULL,
        status text NOT NULL CHECK (status IN ('queued', 'sent', 'failed', 'outbox')),
        detail text,
        attempts integer NOT NULL DEFAULT 0,
        due_at timestamptz,
        give_up_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CHECK ((status = 'queued') = (due_at IS NOT NULL))
      );
      CREATE INDEX alert_delivery_due ON alert_delivery (due_at) WHERE status = 'queued';
      CREATE INDEX alert_delivery_rule ON alert_delivery (rule_id, id DESC);
      -- Up to when ended runs have been looked at: one row, which whoever looks holds meanwhile.
      CREATE TABLE alert_cursor (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        looked_until timestamptz NOT NULL,
        looked_at timestamptz NOT NULL
      );
      INSERT INTO alert_cursor (looked_until, looked_at) VALUES (now(), '-infinity');
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE alert_cursor, alert_delivery, alert_state, alert_rule");
  }
}
