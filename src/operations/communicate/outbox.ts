/**
 * The outbox stores each message as a row before the message is sent. Each operation is one statement that
 * checks which process holds the message. A message whose sending has started is never claimed again.
 */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import type { Email, Sms } from "../../rules/message-input.js";

/** PostgreSQL notification channel: a notification means that e-mails or text messages are waiting to be sent. */
export const MESSAGE_CHANNEL = "svc_message";

export const MESSAGE_STATUSES = [
  "kept",
  "queued",
  "sent",
  "delivered",
  "rejected",
  "bounced",
  "complained",
  "failed",
  "unknown",
] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];
export type MessageKind = "email" | "sms";

/** A recipient and the delivery status. Without a status, the message was not sent to this recipient yet. */
export interface Recipient {
  /** An e-mail address or a phone number. */
  address: string;
  name: string | null;
  /** For e-mails: to, cc or bcc. */
  type: string | null;
  status?: "sent" | "rejected";
  detail?: string;
}

export type Content = Omit<Email, "to"> | Omit<Sms, "to">;

export interface NewMessage {
  appId: number;
  /** Status. `kept` means that the message is only stored, because no provider is configured that could send it. */
  status: "kept" | "queued";
  content: Content;
  recipients: readonly Recipient[];
  reference: string;
  runId: number | null;
  personId: number | null;
}

/** A message that this process has claimed. */
export interface ClaimedMessage {
  id: number;
  appId: number;
  content: Content;
  recipients: Recipient[];
  reference: string;
  attempts: number;
  giveUpAt: Date;
  createdAt: Date;
  wasDelayed: boolean;
  runId: number | null;
  personId: number | null;
}

/** Outcome of an attempt: a final status, or the time of the next attempt. */
export type DeliveryOutcome = { recipients: readonly Recipient[]; detail: string } & (
  | { status: Exclude<MessageStatus, "kept" | "queued">; providerId?: string | null }
  | { status: "queued"; dueAt: Date }
);

/** Time after which no further attempt is made to send a message. */
const TRY_FOR = "interval '24 hours'";

const INSERT_MESSAGE = `
  INSERT INTO message (app_id, kind, status, content, recipients, reference, run_id, person_id, created_at, updated_at, due_at,
                       give_up_at)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9::timestamptz, $9::timestamptz, CASE WHEN $3 = 'queued' THEN $9::timestamptz END,
         $9::timestamptz + ${TRY_FOR}
  RETURNING id`;

/**
 * Claims due messages, first those of the apps with the fewest messages in progress in this process. $2 are apps, $3
 * their numbers of messages in progress, $4 the limit of one app, $5 the total limit, $6 the time.
 */
const CLAIM_MESSAGES = `
  WITH RECURSIVE waiting (app_id) AS (
    (SELECT app_id FROM message WHERE status = 'queued' AND holder IS NULL ORDER BY app_id LIMIT 1)
    UNION ALL
    SELECT (SELECT message.app_id FROM message WHERE status = 'queued' AND holder IS NULL AND message.app_id > waiting.app_id
             ORDER BY message.app_id LIMIT 1)
      FROM waiting WHERE waiting.app_id IS NOT NULL),
  turn AS (
    SELECT first.id, row_number() OVER (PARTITION BY waiting.app_id ORDER BY first.due_at) + coalesce(busy.sending, 0) AS place
      FROM waiting LEFT JOIN unnest($2::bigint[], $3::int[]) AS busy (app_id, sending) USING (app_id)
      CROSS JOIN LATERAL (
        SELECT id, due_at FROM message
         WHERE status = 'queued' AND holder IS NULL AND message.app_id = waiting.app_id AND due_at <= $6
         ORDER BY due_at LIMIT $4) AS first),
  chosen AS (
    SELECT message.id FROM message JOIN turn USING (id)
     WHERE turn.place <= $4 AND message.status = 'queued' AND message.holder IS NULL
     ORDER BY turn.place LIMIT $5 FOR UPDATE OF message SKIP LOCKED)
  UPDATE message SET holder = $1, claimed_at = now(), handed_at = NULL, attempts = attempts + 1
    FROM chosen WHERE message.id = chosen.id
  RETURNING message.id, app_id AS "appId", content, recipients, reference, attempts, give_up_at AS "giveUpAt",
            message.created_at AS "createdAt", delayed_at IS NOT NULL AS "wasDelayed", run_id AS "runId",
            person_id AS "personId"`;

/**
 * Marks a message as being sent, if the process still has its lease. After the lease has expired, another process may
 * release the message.
 */
const HAND_OVER = `
  UPDATE message SET handed_at = now()
   WHERE id = $1 AND holder = $2 AND EXISTS (SELECT FROM instance WHERE id = $2 AND lease_until >= now()) RETURNING id`;

/**
 * Stores an outcome. $1 is the message, $2 the holder, $3 the status, $4 the recipients, $5 the detail, $6 the time of
 * the next attempt, $7 the provider's ID. If a provider gives two messages the same ID, only the first message stores
 * it.
 */
const SETTLE_MESSAGE = `
  UPDATE message SET status = $3, recipients = $4, detail = $5, due_at = $6,
         provider_id = CASE WHEN EXISTS (SELECT FROM message AS other
                                          WHERE other.app_id = message.app_id AND other.provider_id = $7)
                            THEN provider_id ELSE coalesce($7, provider_id) END,
         holder = NULL, handed_at = NULL, updated_at = now(),
         delayed_at = CASE WHEN $3 = 'queued' THEN coalesce(delayed_at, now()) ELSE delayed_at END
   WHERE id = $1 AND holder = $2 RETURNING id`;

/**
 * Releases messages of processes whose lease has expired. A message is queued again only if certainly no part of it was
 * sent; otherwise a person decides.
 */
const RELEASE_MESSAGES = `
  UPDATE message
     SET status = CASE WHEN handed_at IS NULL THEN 'queued' ELSE 'unknown' END, holder = NULL,
         due_at = CASE WHEN handed_at IS NULL THEN due_at END, updated_at = now(),
         attempts = CASE WHEN handed_at IS NULL THEN attempts - 1 ELSE attempts END,
         detail = CASE WHEN handed_at IS NULL THEN detail ELSE 'the service ended while the message was being sent' END`;
const RELEASE_LOST_MESSAGES = `
  ${RELEASE_MESSAGES} WHERE holder IS NOT NULL
     AND NOT EXISTS (SELECT FROM instance WHERE instance.id = message.holder AND lease_until >= now()) RETURNING id`;
/**
 * Releases messages that the process $1 has claimed and is not sending, because the response to the claim was lost. $2
 * are the messages that the process is sending.
 */
const RELEASE_ORPHAN_MESSAGES = `
  ${RELEASE_MESSAGES} WHERE holder = $1 AND id <> ALL ($2::bigint[]) AND claimed_at < now() - interval '10 seconds' RETURNING id`;

/* Stores a person's decision about a message. $1 is the app, $2 the message, $3 the status, $4 the time. */
const DECIDE_MESSAGE = `
  UPDATE message SET status = $3, updated_at = now(), handed_at = NULL,
         due_at = CASE WHEN $3 = 'queued' THEN $4::timestamptz END,
         give_up_at = CASE WHEN $3 = 'queued' THEN $4::timestamptz + ${TRY_FOR} ELSE give_up_at END
   WHERE app_id = $1 AND id = $2 AND status = 'unknown' RETURNING id`;

const NEXT_DUE = "SELECT min(due_at) AS next FROM message WHERE status = 'queued' AND holder IS NULL";

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(db: DataSource) {
  return {
    /** Writes the message's row. @param now time at which the message becomes due */
    async accept(executor: Executor, message: NewMessage, now: Date): Promise<number> {
      const { appId, status, content, recipients, reference, runId, personId } = message;
      const jsonTexts = [JSON.stringify(content), JSON.stringify(recipients)];
      const values = [appId, content.kind, status, ...jsonTexts, reference, runId, personId, now];
      const [row] = await rows<{ id: number }>(executor, INSERT_MESSAGE, values);
      return row!.id;
    },

    /** Notifies every sender when the transaction commits. */
    async announce(executor: Executor): Promise<void> {
      await rows(executor, `SELECT pg_notify('${MESSAGE_CHANNEL}', '')`);
    },

    /** Claims up to `count` due messages. @param sendingByApp number of messages in progress in this process, by app */
    async claim(
      holder: string,
      {
        sendingByApp,
        share,
        count,
        now,
      }: { sendingByApp: [apps: number[], counts: number[]]; share: number; count: number; now: Date },
    ): Promise<ClaimedMessage[]> {
      return rows(db, CLAIM_MESSAGES, [holder, ...sendingByApp, share, count, now]);
    },

    /**
     * Marks the message as being sent. Returns false if another process holds the message, so that this process must
     * not send it.
     */
    async markSending(holder: string, id: number): Promise<boolean> {
      return (await rows(db, HAND_OVER, [id, holder])).length > 0;
    },

    /** Stores the outcome of an attempt. Returns false, and writes nothing, if another process holds the message. */
    async settle(executor: Executor, holder: string, id: number, settlement: DeliveryOutcome): Promise<boolean> {
      const { status, recipients, detail } = settlement;
      const [dueAt, providerId] =
        settlement.status === "queued" ? [settlement.dueAt, null] : [null, settlement.providerId ?? null];
      const values = [id, holder, status, JSON.stringify(recipients), detail, dueAt, providerId];
      return (await rows(executor, SETTLE_MESSAGE, values)).length > 0;
    },

    /**
     * Releases messages for which the response to a claim of `holder` was lost. If `mayDeclareDead` is true, also
     * releases the messages of dead processes. Returns the number of released messages.
     */
    async releaseMessages(holder: string, knownIds: readonly number[], mayDeclareDead: boolean): Promise<number> {
      const lostMessages = mayDeclareDead ? await rows(db, RELEASE_LOST_MESSAGES) : [];
      const orphanMessages = await rows(db, RELEASE_ORPHAN_MESSAGES, [holder, knownIds]);
      return lostMessages.length + orphanMessages.length;
    },

    /** Stores a person's decision. Returns false if the message's status is not `unknown`. */
    async decide(
      executor: Executor,
      appId: number,
      id: number,
      status: "sent" | "queued",
      now: Date,
    ): Promise<boolean> {
      return (await rows(executor, DECIDE_MESSAGE, [appId, id, status, now])).length > 0;
    },

    /** Returns the time at which the next message is due; null if no message is queued. */
    async nextDue(): Promise<Date | null> {
      return (await rows<{ next: Date | null }>(db, NEXT_DUE))[0]!.next;
    },
  };
}
