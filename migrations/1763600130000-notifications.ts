import type { MigrationInterface, QueryRunner } from "typeorm";

/** Notifications of apps, their readers, and the devices that receive them by Web Push. */
export class Notifications1763600130000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- cursor: the place among the app's published ones, given in the order of their commits. push_at: when it goes out by Web Push.
      CREATE TABLE notification (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        status text NOT NULL CHECK (status IN ('draft', 'published', 'scheduled')),
        data jsonb NOT NULL,
        scope jsonb,
        order_at timestamptz,
        push jsonb,
        push_at timestamptz,
        cursor bigint,
        published_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        bytes integer GENERATED ALWAYS AS (octet_length(data::text) + coalesce(octet_length(scope::text), 0)
                                           + coalesce(octet_length(push::text), 0)) STORED,
        CHECK (status <> 'scheduled' OR order_at IS NOT NULL),
        CHECK ((status = 'published') = (cursor IS NOT NULL))
      );
      CREATE INDEX notification_app ON notification (app_id, id DESC);
      CREATE UNIQUE INDEX notification_cursor ON notification (app_id, cursor) WHERE cursor IS NOT NULL;
      CREATE INDEX notification_due ON notification (order_at) WHERE status = 'scheduled';
      CREATE INDEX notification_push ON notification (push_at) WHERE push_at IS NOT NULL;
      CREATE TABLE notification_place (
        app_id bigint PRIMARY KEY REFERENCES app ON DELETE CASCADE,
        cursor bigint NOT NULL
      );
      -- reader: whom a page works for, a person or a visitor's credential.
      CREATE TABLE notification_read (
        notification_id bigint NOT NULL REFERENCES notification ON DELETE CASCADE,
        reader text NOT NULL,
        read_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (notification_id, reader)
      );
      -- Everything of the app up to that place is read.
      CREATE TABLE notification_read_all (
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        reader text NOT NULL,
        cursor bigint NOT NULL,
        read_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (app_id, reader)
      );
      CREATE TABLE vapid_key (
        app_id bigint PRIMARY KEY REFERENCES app ON DELETE CASCADE,
        public_key text NOT NULL,
        sealed bytea NOT NULL
      );
      CREATE TABLE push_subscription (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        reader text NOT NULL,
        reader_user jsonb,
        endpoint text NOT NULL,
        p256dh text NOT NULL,
        auth text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (app_id, endpoint)
      );
      CREATE INDEX push_subscription_reader ON push_subscription (app_id, reader);
      CREATE TABLE push_delivery (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        notification_id bigint NOT NULL REFERENCES notification ON DELETE CASCADE,
        subscription_id bigint NOT NULL REFERENCES push_subscription ON DELETE CASCADE,
        attempts integer NOT NULL DEFAULT 0,
        due_at timestamptz NOT NULL
      );
      CREATE INDEX push_delivery_due ON push_delivery (due_at);
      CREATE INDEX push_delivery_subscription ON push_delivery (subscription_id);
      CREATE INDEX push_delivery_notification ON push_delivery (notification_id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE push_delivery, push_subscription, vapid_key, notification_read_all, notification_read, notification_place,
                 notification;
    `);
  }
}
