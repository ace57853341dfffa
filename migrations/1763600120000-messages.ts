import type { MigrationInterface, QueryRunner } from "typeorm";

/** Outbox of messages. The service stores each message before it sends it, and afterwards updates the stored status. */
export class Messages1763600120000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- queued without a holder waits until due_at; handed_at says that its content was about to leave. content: what was accepted,
      -- recipients with what became of each. reference goes along on every try, as the Message-ID or the webhook's key.
      CREATE TABLE message (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id bigint NOT NULL REFERENCES app ON DELETE CASCADE,
        kind text NOT NULL CHECK (kind IN ('email', 'sms')),
        status text NOT NULL CHECK (status IN ('kept', 'queued', 'sent', 'delivered', 'rejected', 'bounced', 'complained',
                                               'failed', 'unknown')),
        content json NOT NULL,
        recipients jsonb NOT NULL,
        reference uuid NOT NULL UNIQUE,
        provider_id text,
        detail text,
        attempts integer NOT NULL DEFAULT 0,
        due_at timestamptz,
        give_up_at timestamptz,
        delayed_at timestamptz,
        holder uuid,
        claimed_at timestamptz,
        handed_at timestamptz,
        run_id bigint,
        person_id bigint,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        bytes integer GENERATED ALWAYS AS (octet_length(content::text) + octet_length(recipients::text)) STORED,
        CHECK (status = 'queued' OR (due_at IS NULL AND holder IS NULL)),
        CHECK (status <> 'queued' OR due_at IS NOT NULL)
      );
      CREATE INDEX message_app ON message (app_id, id DESC);
      CREATE INDEX message_due ON message (app_id, due_at) WHERE status = 'queued' AND holder IS NULL;
      CREATE INDEX message_next ON message (due_at) WHERE status = 'queued' AND holder IS NULL;
      CREATE INDEX message_held ON message (holder) WHERE holder IS NOT NULL;
      CREATE INDEX message_created ON message (created_at) WHERE status <> 'queued';
      CREATE UNIQUE INDEX message_provider ON message (app_id, provider_id) WHERE provider_id IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE message");
  }
}
