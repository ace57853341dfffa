/**
 * The outbox: stores each message as a row before the message is sent. Only the process that has claimed a message may send this message
 * and store the outcome.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { Email, Sms } from "../../rules/message-input.js";

/** PostgreSQL notification channel. A notification means that the outbox contains messages to send. */
export const QUEUED_MESSAGE_CHANNEL = "svc_message";

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

/**
 * Recipient of a message. `status` is missing until the server has accepted or permanently rejected the message for this recipient. Later
 * delivery reports can replace the status.
 */
export interface Recipient {
  /** An e-mail address or a phone number. */
  address: string;
  name: string | null;
  /** Type of an e-mail recipient: to, cc or bcc. Null for text messages. */
  type: string | null;
  status?: "sent" | "delivered" | "rejected" | "bounced" | "complained";
  detail?: string;
}

export type MessageContent = Omit<Email, "to"> | Omit<Sms, "to">;

export interface NewMessage {
  appId: number;
  /** `kept` means that the message is stored but not sent, because no valid mail server or provider is configured. */
  status: "kept" | "queued";
  content: MessageContent;
  recipients: readonly Recipient[];
  reference: string;
  runId: number | null;
  personId: number | null;
}

export interface ClaimedMessage {
  id: number;
  appId: number;
  content: MessageContent;
  recipients: Recipient[];
  reference: string;
  attempts: number;
  giveUpAt: Date;
  createdAt: Date;
  wasDelayed: boolean;
  runId: number | null;
  personId: number | null;
}

/** Outcome of an attempt to send a message: a final status, or the time of the next attempt. */
export type StoredDeliveryOutcome = { recipients: readonly Recipient[]; detail: string } & (
  | { status: Exclude<MessageStatus, "kept" | "queued">; providerId?: string | null }
  | { status: "queued"; dueAt: Date }
);

/** The service stops trying to send a message when it has been stored for this long. */
const RETRY_PERIOD = "interval '24 hours'";

const INSERT_MESSAGE = `
  INSERT INTO message (app_id, kind, status, content, recipients, reference, run_id, person_id, created_at, updated_at, due_at,
                       give_up_at)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9::timestamptz, $9::timestamptz, CASE WHEN $3 = 'queued' THEN $9::timestamptz END,
         $9::timestamptz + ${RETRY_PERIOD}
  RETURNING id`;

/**
 * Claims due messages for the process $1. $2 are IDs of apps. $3 are the numbers of messages that the process is sending for these apps. $4
 * is the limit per app, including these messages. $5 is the maximum number of claimed messages. $6 is the current time.
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

/** Marks a message as being sent if this process still has its lease. If the lease has expired, another process may release the message. */
const MARK_SENDING = `
  UPDATE message SET handed_at = now()
   WHERE id = $1 AND holder = $2 AND EXISTS (SELECT FROM instance WHERE id = $2 AND lease_until >= now()) RETURNING id`;

/** Stores the outcome of an attempt. $7, the provider's ID of the message, is ignored if another message of the app already has this ID. */
const STORE_ATTEMPT_RESULT = `
  UPDATE message SET status = $3, recipients = $4, detail = $5, due_at = $6,
         provider_id = CASE WHEN EXISTS (SELECT FROM message AS other
                                          WHERE other.app_id = message.app_id AND other.provider_id = $7)
                            THEN provider_id ELSE coalesce($7, provider_id) END,
         holder = NULL, handed_at = NULL, updated_at = now(),
         delayed_at = CASE WHEN $3 = 'queued' THEN coalesce(delayed_at, now()) ELSE delayed_at END
   WHERE id = $1 AND holder = $2 RETURNING id`;

/** Queues a claimed message again if its sending has not started. Otherwise sets the status `unknown`, about which a person decides. */
const RELEASE_MESSAGES = `
  UPDATE message
     SET status = CASE WHEN handed_at IS NULL THEN 'queued' ELSE 'unknown' END, holder = NULL,
         due_at = CASE WHEN handed_at IS NULL THEN due_at END, updated_at = now(),
         attempts = CASE WHEN handed_at IS NULL THEN attempts - 1 ELSE attempts END,
         detail = CASE WHEN handed_at IS NULL THEN detail ELSE 'the service ended while the message was being sent' END`;
const RELEASE_LOST_MESSAGES = `
  ${RELEASE_MESSAGES} WHERE holder IS NOT NULL
     AND NOT EXISTS (SELECT FROM instance WHERE instance.id = message.holder AND lease_until >= now()) RETURNING id`;
/** Releases messages that the process $1 claimed more than 10 seconds ago and is not sending. $2 are the messages that it is sending. */
const RELEASE_ORPHAN_MESSAGES = `
  ${RELEASE_MESSAGES} WHERE holder = $1 AND id <> ALL ($2::bigint[]) AND claimed_at < now() - interval '10 seconds' RETURNING id`;

/* Stores a person's decision about a message. $1 is the app, $2 the message, $3 the status, $4 the time. */
const STORE_DECISION = `
  UPDATE message SET status = $3, updated_at = now(), handed_at = NULL,
         due_at = CASE WHEN $3 = 'queued' THEN $4::timestamptz END,
         give_up_at = CASE WHEN $3 = 'queued' THEN $4::timestamptz + ${RETRY_PERIOD} ELSE give_up_at END
   WHERE app_id = $1 AND id = $2 AND status = 'unknown' RETURNING id`;

const SELECT_NEXT_DUE_TIME = "SELECT min(due_at) AS next FROM message WHERE status = 'queued' AND holder IS NULL";

export class Outbox {
  constructor(private readonly db: Db) {}

  /** Inserts a message. @param now current time, at which the message is due for its first attempt */
  async accept(executor: SqlClient, message: NewMessage, now: Date): Promise<number> {
    const { appId, status, content, recipients, reference, runId, personId } = message;
    const jsonTexts = [JSON.stringify(content), JSON.stringify(recipients)];
    const values = [appId, content.kind, status, ...jsonTexts, reference, runId, personId, now];
    const [row] = await rows<{ id: number }>(executor, INSERT_MESSAGE, values);
    return row!.id;
  }

  /** Notifies the senders in all processes about new messages when the transaction of `executor` commits. */
  async announce(executor: SqlClient): Promise<void> {
    await rows(executor, `SELECT pg_notify('${QUEUED_MESSAGE_CHANNEL}', '')`);
  }

  /** Claims up to `limit` due messages. `limitPerApp` includes messages that this process is already sending (`sendingByApp`). */
  async claim(
    holder: string,
    {
      sendingByApp,
      limitPerApp,
      limit,
      now,
    }: { sendingByApp: [apps: number[], counts: number[]]; limitPerApp: number; limit: number; now: Date },
  ): Promise<ClaimedMessage[]> {
    return rows(this.db, CLAIM_MESSAGES, [holder, ...sendingByApp, limitPerApp, limit, now]);
  }

  /** Marks the message as being sent. Returns false without a valid lease or claim: the process must not send the message then. */
  async markSending(holder: string, id: number): Promise<boolean> {
    return (await rows(this.db, MARK_SENDING, [id, holder])).length > 0;
  }

  /** Locks a message and returns its recipients, with the statuses that delivery reports have stored since the message was claimed. */
  async lockRecipients(executor: SqlClient, id: number): Promise<Recipient[]> {
    const sql = "SELECT recipients FROM message WHERE id = $1 FOR UPDATE";
    const [message] = await rows<{ recipients: Recipient[] }>(executor, sql, [id]);
    return message?.recipients ?? [];
  }

  /** Stores the outcome of an attempt. Returns false and stores nothing if this process has lost its claim on the message. */
  async storeAttemptResult(
    executor: SqlClient,
    holder: string,
    id: number,
    result: StoredDeliveryOutcome,
  ): Promise<boolean> {
    const { status, recipients, detail } = result;
    const [dueAt, providerId] = result.status === "queued" ? [result.dueAt, null] : [null, result.providerId ?? null];
    const values = [id, holder, status, JSON.stringify(recipients), detail, dueAt, providerId];
    return (await rows(executor, STORE_ATTEMPT_RESULT, values)).length > 0;
  }

  /**
   * Releases messages that the process `holder` has claimed but is not sending, for example because the response to the claim was lost. If
   * `mayDeclareDead` is true, also releases the messages of processes that have stopped. Returns the number of released messages.
   */
  async releaseMessages(holder: string, knownIds: readonly number[], mayDeclareDead: boolean): Promise<number> {
    const lostMessages = mayDeclareDead ? await rows(this.db, RELEASE_LOST_MESSAGES) : [];
    const orphanMessages = await rows(this.db, RELEASE_ORPHAN_MESSAGES, [holder, knownIds]);
    return lostMessages.length + orphanMessages.length;
  }

  /** Stores a person's decision about a message. Returns false if the status of the message is not `unknown`. */
  async decide(executor: SqlClient, appId: number, id: number, status: "sent" | "queued", now: Date): Promise<boolean> {
    return (await rows(executor, STORE_DECISION, [appId, id, status, now])).length > 0;
  }

  /** Returns the time at which the next message is due; null if no unclaimed message is queued. */
  async readNextDueTime(): Promise<Date | null> {
    return (await rows<{ next: Date | null }>(this.db, SELECT_NEXT_DUE_TIME))[0]!.next;
  }
}
