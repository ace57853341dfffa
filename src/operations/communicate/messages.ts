/**
 * Operations of callers on messages: send, list, read, and resolve the status `unknown`. Stores each valid message with its log event in
 * one transaction; `sender.ts` sends the message later.
 */

import type { Db } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { refuseField } from "../../rules/fields.js";
import { parseEmail, parseMessageBatch, parseSms } from "../../rules/message-input.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { runOncePerIdempotencyKey } from "../actions/idempotency.js";
import { recordChange } from "../records/audit.js";
import {
  listMessages,
  type MessageList,
  type MessageQuery,
  requireMessage,
  type StoredMessage,
} from "./message-rows.js";
import type { Outbox } from "./outbox.js";
import type { MessageReceipt, OutboxWriter, ValidatedMessage } from "./outbox-writer.js";

/**
 * Decisions of a person about a message with the status `unknown`: the service does not know whether this message was sent. "sent": the
 * message counts as sent. "again": the service queues the message again.
 */
export const UNKNOWN_DELIVERY_DECISIONS = ["sent", "again"] as const;

interface MessagesOptions {
  db: Db;
  outbox: Outbox;
  outboxWriter: OutboxWriter;
  now: () => number;
}

export class Messages {
  constructor(private readonly options: MessagesOptions) {}

  /** Stores all messages of a request, each with its log event. If one message is invalid, stores none. */
  private async acceptMessages(
    caller: Caller,
    appId: number,
    messages: readonly ValidatedMessage[],
    key: string | null,
  ): Promise<MessageReceipt[]> {
    const { db, outboxWriter } = this.options;
    const store = await outboxWriter.prepare(caller, appId, messages, "communicate");
    return db.transaction((manager) =>
      runOncePerIdempotencyKey(manager, caller, { appId, key, request: messages }, () => store(manager)),
    );
  }

  /**
   * Stores an e-mail to be sent. Stores nothing if it throws.
   * @throws REQUEST_INVALID, SETTINGS_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async sendEmail(caller: Caller, appId: number, body: unknown, key: string | null): Promise<MessageReceipt> {
    return (await this.acceptMessages(caller, appId, [parseEmail(body)], key))[0]!;
  }

  /** Stores one e-mail for each item of the body `[{options, data}]`. Stores none if one item is invalid. */
  async sendEmails(caller: Caller, appId: number, body: unknown, key: string | null): Promise<MessageReceipt[]> {
    return this.acceptMessages(caller, appId, parseMessageBatch(body, parseEmail), key);
  }

  /** Stores a text message to be sent. @throws the errors of `sendEmail` */
  async sendSms(caller: Caller, appId: number, body: unknown, key: string | null): Promise<MessageReceipt> {
    return (await this.acceptMessages(caller, appId, [parseSms(body)], key))[0]!;
  }

  async sendSmsBatch(caller: Caller, appId: number, body: unknown, key: string | null): Promise<MessageReceipt[]> {
    return this.acceptMessages(caller, appId, parseMessageBatch(body, parseSms), key);
  }

  /**
   * Lists messages of the app's outbox, the newest first.
   * @param reserve reserves memory for the response
   * @throws REQUEST_INVALID; errors of `reserve`
   */
  async list(appId: number, query: MessageQuery, reserve?: ReserveResponseBytes): Promise<MessageList> {
    return listMessages(this.options.db, appId, query, reserve);
  }

  /** Returns one message with its content. @throws NOT_FOUND */
  async find(appId: number, id: number): Promise<StoredMessage> {
    return requireMessage(this.options.db, appId, id);
  }

  /**
   * Stores a person's decision (UNKNOWN_DELIVERY_DECISIONS) about a message with the status `unknown`.
   * @throws REQUEST_INVALID, NOT_FOUND; MESSAGE_DECIDED if the message has another status
   */
  async decide(caller: Caller, appId: number, id: number, decision: unknown): Promise<StoredMessage> {
    const { db, outbox, now } = this.options;
    if (!UNKNOWN_DELIVERY_DECISIONS.some((allowed) => allowed === decision)) {
      refuseField("decision", '"sent" or "again"', decision);
    }
    throwIfUnknownField(caller);
    await db.transaction(async (manager) => {
      const status = decision === "sent" ? "sent" : "queued";
      if (!(await outbox.decide(manager, appId, id, status, new Date(now())))) {
        const message = await requireMessage(manager, appId, id);
        throw new ActionError(
          "MESSAGE_DECIDED",
          `only a message with the status "unknown" can be marked as sent or sent again (got a message with the status "${message.status}")`,
        );
      }
      await recordChange(manager, caller, { appId, type: "app.message.decide", data: { messageId: id, decision } });
      if (status === "queued") await outbox.announce(manager);
    });
    return requireMessage(db, appId, id);
  }
}
