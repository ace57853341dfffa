/** Reads messages of the outbox for callers: a list of messages, or one message with its content. */

import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { refuseField } from "../../rules/fields.js";
import type { MessageAttachment } from "../../rules/message-fields.js";
import {
  parseLimitAndOffset,
  type ReserveResponseBytes,
  type SizedRow,
  selectIdsThatFitOnPage,
} from "../../rules/page.js";
import { MESSAGE_STATUSES, type MessageKind, type MessageStatus, type Recipient } from "./outbox.js";

/** A message in a list of the outbox. Times are ISO 8601. */
export interface MessageSummary {
  id: number;
  kind: MessageKind;
  status: MessageStatus;
  /** Subject of an e-mail; null for text messages. */
  subject: string | null;
  /** Recipients of the message. A list of messages contains only the first five recipients of each message. */
  to: (Omit<Recipient, "status" | "detail"> & { status: string | null; detail: string | null })[];
  /** Number of all recipients of the message. */
  recipients: number;
  attempts: number;
  /** Result of the last attempt, such as the reply of the mail server, or detail of a delivery report; null before the first attempt. */
  detail: string | null;
  /** Time of the next attempt; null if the status is not `queued`. */
  dueAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface StoredMessage extends MessageSummary {
  fromName: string | null;
  html: string | null;
  /** Plain text of an e-mail, or the whole content of a text message. */
  text: string | null;
  headers: Record<string, string>;
  attachments: MessageAttachment[];
}

export interface MessageQuery {
  kind?: unknown;
  status?: unknown;
  limit?: unknown;
  offset?: unknown;
}

export interface MessageList {
  messages: MessageSummary[];
  pagination: { total: number; hasMore: boolean };
}

const MAX_LISTED_RECIPIENTS = 5;

const SUMMARY_COLUMNS = `id, kind, status, content->>'subject' AS subject, jsonb_array_length(recipients) AS recipients, attempts, detail,
  due_at AS "dueAt", created_at AS "createdAt", updated_at AS "updatedAt"`;

interface MessageSummaryRow extends Omit<MessageSummary, "to" | "dueAt" | "createdAt" | "updatedAt"> {
  to: Recipient[];
  dueAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

function toMessageSummary({ to, dueAt, createdAt, updatedAt, ...row }: MessageSummaryRow): MessageSummary {
  return {
    ...row,
    to: to.map((recipient) => ({ ...recipient, status: recipient.status ?? null, detail: recipient.detail ?? null })),
    dueAt: dueAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function requireOneOf(value: unknown, allowed: readonly string[], name: string): string | null {
  if (value === undefined || value === null) return null;
  if (allowed.some((word) => word === value)) return value as string;
  refuseField(name, `one of ${allowed.join(", ")}`, value);
}

/**
 * Lists messages of the app's outbox, the newest first.
 * @param reserve reserves memory for the response
 * @throws REQUEST_INVALID; errors of `reserve`
 */
export async function listMessages(
  db: Db,
  appId: number,
  query: MessageQuery,
  reserve?: ReserveResponseBytes,
): Promise<MessageList> {
  const { limit, offset } = parseLimitAndOffset(query);
  const filterValues = [
    requireOneOf(query.kind, ["email", "sms"], "kind"),
    requireOneOf(query.status, MESSAGE_STATUSES, "status"),
  ];
  const IS_MATCHING_MESSAGE = "app_id = $1 AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR status = $3)";
  const values = [appId, ...filterValues];
  const [count] = await rows<{ total: number }>(
    db,
    `SELECT count(*) AS total FROM message WHERE ${IS_MATCHING_MESSAGE}`,
    values,
  );
  // For a listed message, reserves 4096 bytes: space for a subject, five addresses and a server's reply.
  const messageSizes = await rows<SizedRow>(
    db,
    `SELECT id, 4096 AS bytes FROM message WHERE ${IS_MATCHING_MESSAGE} ORDER BY id DESC LIMIT $4 OFFSET $5`,
    [...values, limit, offset],
  );
  const first = `(SELECT coalesce(jsonb_agg(recipient ORDER BY place), '[]') FROM jsonb_array_elements(recipients) WITH ORDINALITY AS r (recipient, place)
                   WHERE place <= ${MAX_LISTED_RECIPIENTS}) AS "to"`;
  const sql = `SELECT ${SUMMARY_COLUMNS}, ${first} FROM message WHERE id = ANY ($1::bigint[]) ORDER BY id DESC`;
  const messageRows = await rows<MessageSummaryRow>(db, sql, [await selectIdsThatFitOnPage(messageSizes, reserve)]);
  const { total } = count!;
  return {
    messages: messageRows.map(toMessageSummary),
    pagination: { total, hasMore: offset + messageRows.length < total },
  };
}

/** Returns one message with its content. @throws NOT_FOUND */
export async function requireMessage(executor: SqlClient, appId: number, id: number): Promise<StoredMessage> {
  const sql = `SELECT ${SUMMARY_COLUMNS}, recipients AS "to", content FROM message WHERE app_id = $1 AND id = $2`;
  const [row] = await rows<MessageSummaryRow & { content: Partial<StoredMessage> & { body?: string } }>(executor, sql, [
    appId,
    id,
  ]);
  if (!row) throw new ActionError("NOT_FOUND", "no such message");
  const { content, ...summary } = row;
  const { fromName = null, html = null, text = content.body ?? null, headers = {}, attachments = [] } = content;
  return { ...toMessageSummary({ ...summary, recipients: row.to.length }), fromName, html, text, headers, attachments };
}
