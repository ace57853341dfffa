/**
 * The operations of Communicate: messages are judged, stored with their log event in one transaction, and shown; a person decides about
 * those of which nobody knows whether they were sent. Sends nothing itself.
 */
import { randomUUID } from "node:crypto";
import type { DataSource } from "typeorm";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { described } from "../../rules/described.js";
import { DestinationFault } from "../../rules/message-destination.js";
import { type Email, parseBatch, parseEmail, parseSms, type Sms } from "../../rules/message-input.js";
import type { Reserve } from "../../rules/page.js";
import { once } from "../actions/idempotency.js";
import { audit } from "../records/audit.js";
import type { Intake } from "../records/intake.js";
import type { LogEvents } from "../records/log-events.js";
import type { Destinations } from "./destinations.js";
import { findMessage, listMessages, type MessageList, type MessageQuery, type StoredMessage } from "./message-rows.js";
import type { Content, NewMessage, Outbox, Recipient } from "./outbox.js";
import { eventData } from "./status-events.js";

/** What the sender of a message gets at once. */
export interface Receipt {
  id: number;
  status: "kept" | "queued";
}

/** What a person may decide of a message that may have been sent. */
export const DECISIONS = ["sent", "again"] as const;

type Judged = Email | Sms;

const recipientsOf = (message: Judged): Recipient[] =>
  message.kind === "email"
    ? message.to.map(({ email, name, type }) => ({ address: email, name, type }))
    : [{ address: message.to, name: null, type: null }];

function contentOf({ to: _, ...content }: Judged): Content {
  return content as Content;
}

export type Messages = ReturnType<typeof createMessages>;

export function createMessages(options: {
  db: DataSource;
  outbox: Outbox;
  destinations: Destinations;
  logEvents: LogEvents;
  intake: Intake;
  now: () => number;
}) {
  const { db, outbox, destinations, logEvents, intake, now } = options;

  /** @throws SETTINGS_INVALID where the setting that says where to is at fault */
  async function statusFor(appId: number, kind: Judged["kind"]): Promise<Receipt["status"]> {
    try {
      return (await (kind === "email" ? destinations.mail(appId) : destinations.sms(appId))) ? "queued" : "kept";
    } catch (error) {
      if (!(error instanceof DestinationFault)) throw error;
      throw new ActionError("SETTINGS_INVALID", error.message);
    }
  }

  /** All of them or none, each with its event. */
  async function accept(
    caller: Caller,
    appId: number,
    messages: readonly Judged[],
    key: string | null,
  ): Promise<Receipt[]> {
    const status = await statusFor(appId, messages[0]!.kind);
    const { personId, runId } = caller;
    const rows = messages.map((message) => ({ content: contentOf(message), recipients: recipientsOf(message) }));
    intake.take(caller, appId, Buffer.byteLength(JSON.stringify(rows)), 2 * rows.length);
    const moment = new Date(now());
    return db.transaction(async (manager) => {
      const store = async () => {
        const receipts: Receipt[] = [];
        for (const { content, recipients } of rows) {
          const row: NewMessage = { appId, status, content, recipients, reference: randomUUID(), runId, personId };
          const id = await outbox.accept(manager, row, moment);
          const data = {
            ...eventData(id, recipients, null),
            ...(content.kind === "email" && { subject: content.subject }),
          };
          await logEvents.emit(manager, caller, appId, { type: `${content.kind}.communicate`, data });
          receipts.push({ id, status });
        }
        if (status === "queued") await outbox.announce(manager);
        return receipts;
      };
      return once(manager, caller, { appId, key, request: messages }, store);
    });
  }

  return {
    /** @throws REQUEST_INVALID, SETTINGS_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED: then nothing is stored */
    async sendEmail(caller: Caller, appId: number, body: unknown, key: string | null): Promise<Receipt> {
      return (await accept(caller, appId, [parseEmail(body)], key))[0]!;
    },

    /** As `sendEmail`, for each of `[{options, data}]`: all or none. */
    async sendEmails(caller: Caller, appId: number, body: unknown, key: string | null): Promise<Receipt[]> {
      return accept(caller, appId, parseBatch(body, parseEmail), key);
    },

    /** @throws as `sendEmail` */
    async sendSms(caller: Caller, appId: number, body: unknown, key: string | null): Promise<Receipt> {
      return (await accept(caller, appId, [parseSms(body)], key))[0]!;
    },

    async sendSmsBatch(caller: Caller, appId: number, body: unknown, key: string | null): Promise<Receipt[]> {
      return accept(caller, appId, parseBatch(body, parseSms), key);
    },

    /** The app's outbox, newest first. @throws REQUEST_INVALID, and what `reserve` throws */
    async list(appId: number, query: MessageQuery, reserve?: Reserve): Promise<MessageList> {
      return listMessages(db, appId, query, reserve);
    },

    /** One message whole. @throws NOT_FOUND */
    async find(appId: number, id: number): Promise<StoredMessage> {
      return findMessage(db, appId, id);
    },

    /**
     * A person's word on a message of which nobody knows whether it was sent: `sent`, or `again`.
     * @throws REQUEST_INVALID, NOT_FOUND; MESSAGE_DECIDED where its status is another by now
     */
    async decide(caller: Caller, appId: number, id: number, decision: unknown): Promise<StoredMessage> {
      if (!DECISIONS.some((one) => one === decision)) {
        throw new ActionError("REQUEST_INVALID", `decision must be sent or again; ${described(decision)} came`);
      }
      await db.transaction(async (manager) => {
        const status = decision === "sent" ? "sent" : "queued";
        if (!(await outbox.decide(manager, appId, id, status, new Date(now())))) {
          const found = await findMessage(manager, appId, id);
          throw new ActionError(
            "MESSAGE_DECIDED",
            `the message is ${found.status}: only an unknown one is decided about`,
          );
        }
        await audit(manager, caller, { appId, type: "app.message.decide", data: { messageId: id, decision } });
        if (status === "queued") await outbox.announce(manager);
      });
      return findMessage(db, appId, id);
    },
  };
}
