/**
 * How a message that has been judged comes into the outbox: its row and the log event of what it is for, in one transaction of whoever
 * sends it. Judges no field and sends nothing.
 */
import { randomUUID } from "node:crypto";
import type { Executor } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { DestinationFault } from "../../rules/message-destination.js";
import type { Email, Sms } from "../../rules/message-input.js";
import type { Intake } from "../records/intake.js";
import type { Emitter, LogEvents } from "../records/log-events.js";
import type { Destinations } from "./destinations.js";
import type { Content, NewMessage, Outbox, Recipient } from "./outbox.js";
import { eventData } from "./status-events.js";

/** What the sender of a message gets at once. */
export interface Receipt {
  id: number;
  status: "kept" | "queued";
}

export type Judged = Email | Sms;

/** What a message is for: the second part of its log event's type (specification, Log events). */
export type Purpose = "communicate" | "dataSourceHook" | "validate" | "2fa";

const recipientsOf = (message: Judged): Recipient[] =>
  message.kind === "email"
    ? message.to.map(({ email, name, type }) => ({ address: email, name, type }))
    : [{ address: message.to, name: null, type: null }];

function contentOf({ to: _, ...content }: Judged): Content {
  return content as Content;
}

/** A code stands in what is sent to verify somebody, perhaps in its subject. */
const mayNameSubject = (purpose: Purpose): boolean => purpose === "communicate" || purpose === "dataSourceHook";

export type Acceptance = ReturnType<typeof createAcceptance>;

export function createAcceptance(options: {
  outbox: Outbox;
  destinations: Destinations;
  logEvents: LogEvents;
  intake: Intake;
  now: () => number;
}) {
  const { outbox, destinations, logEvents, intake, now } = options;

  /** @throws SETTINGS_INVALID where the setting that says where to is at fault */
  async function statusFor(appId: number, kind: Judged["kind"]): Promise<Receipt["status"]> {
    try {
      return (await (kind === "email" ? destinations.mail(appId) : destinations.sms(appId))) ? "queued" : "kept";
    } catch (error) {
      if (!(error instanceof DestinationFault)) throw error;
      throw new ActionError("SETTINGS_INVALID", error.message);
    }
  }

  /**
   * Counts the messages, of one kind, against what the app may have stored, and answers what stores them.
   * @throws SETTINGS_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async function prepare(
    emitter: Emitter,
    appId: number,
    messages: readonly Judged[],
    purpose: Purpose,
  ): Promise<(executor: Executor) => Promise<Receipt[]>> {
    const status = await statusFor(appId, messages[0]!.kind);
    const { personId, runId } = emitter;
    const rows = messages.map((message) => ({ content: contentOf(message), recipients: recipientsOf(message) }));
    intake.take(emitter, appId, Buffer.byteLength(JSON.stringify(rows)), 2 * rows.length);
    const moment = new Date(now());
    return async (executor) => {
      const receipts: Receipt[] = [];
      for (const { content, recipients } of rows) {
        const row: NewMessage = { appId, status, content, recipients, reference: randomUUID(), runId, personId };
        const id = await outbox.accept(executor, row, moment);
        const named = content.kind === "email" && mayNameSubject(purpose) ? { subject: content.subject } : {};
        const data = { ...eventData(id, recipients, null), ...named };
        await logEvents.emit(executor, emitter, appId, { type: `${content.kind}.${purpose}`, data });
        receipts.push({ id, status });
      }
      if (status === "queued") await outbox.announce(executor);
      return receipts;
    };
  }

  return {
    prepare,

    /** The same in a transaction that is under way. @throws as `prepare`: then nothing is stored */
    async acceptWithin(
      executor: Executor,
      emitter: Emitter,
      appId: number,
      messages: readonly Judged[],
      purpose: Purpose,
    ): Promise<Receipt[]> {
      return (await prepare(emitter, appId, messages, purpose))(executor);
    },
  };
}
