import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * A push message stays stored while a process sends it. If this process crashes, another process sends the message. A device refers to the
 * session of the page that subscribed it, instead of to a user.
 */
export class PushDeliveriesHeld1763600160200 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE push_delivery ADD COLUMN holder uuid, ADD COLUMN claimed_at timestamptz;
      CREATE INDEX push_delivery_held ON push_delivery (holder) WHERE holder IS NOT NULL;
      -- null: the page's session is over, and the device stays with the user that it had.
      ALTER TABLE push_subscription DROP COLUMN reader_user,
        ADD COLUMN credential_id bigint REFERENCES credential ON DELETE SET NULL;
      CREATE INDEX push_subscription_credential ON push_subscription (credential_id) WHERE credential_id IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE push_subscription DROP COLUMN credential_id, ADD COLUMN reader_user jsonb;
      ALTER TABLE push_delivery DROP COLUMN holder, DROP COLUMN claimed_at;
    `);
  }
}
