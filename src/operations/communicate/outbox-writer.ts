/** Stores a validated e-mail or text message and its log event in the caller's transaction. `sender.ts` sends the message later. */
import { randomUUID } from "node:crypto";
import type { SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { InvalidDestinationError } from "../../rules/message-destination.js";
import type { Email, Sms } from "../../rules/message-input.js";
import type { LogEventCause, LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { MessageDestinations } from "./destinations.js";
import type { MessageContent, NewMessage, Outbox, Recipient } from "./outbox.js";
import { createMessageEventData } from "./status-events.js";

/**
 * Response to a request that sends a message. The service has only stored the message, and sends it later. The status
 * "kept" means that the service cannot send it, because no mail server or provider is configured.
 */
export interface MessageReceipt {
  id: number;
  status: "kept" | "queued";
}

export type ValidatedMessage = Email | Sms;

/** Purpose of a message. The type of its log event ends with the purpose, as in `email.communicate` (specification, Log events). */
export type MessagePurpose = "communicate" | "dataSourceHook" | "validate" | "2fa";

const createRecipients = (message: ValidatedMessage): Recipient[] =>
  message.kind === "email"
    ? message.to.map(({ email, name, type }) => ({ address: email, name, type }))
    : [{ address: message.to, name: null, type: null }];

function toMessageContent({ to, ...content }: ValidatedMessage): MessageContent {
  return content as MessageContent;
}

/** Log events must not contain the subject of a verification e-mail, because this subject may contain the code. */
const mayLogSubject = (purpose: MessagePurpose): boolean => purpose === "communicate" || purpose === "dataSourceHook";

/** Identifies the data source entry because of which a hook sends a message. */
export interface HookEntryReference {
  appId: number;
  dataSourceId: number;
  dataSourceEntryId: number;
}

interface OutboxWriterOptions {
  outbox: Outbox;
  destinations: MessageDestinations;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  now: () => number;
}

export class OutboxWriter {
  constructor(private readonly options: OutboxWriterOptions) {}

  /** Writes a message to the outbox. Returns its ID and the data of its log event. */
  private async writeMessage(
    executor: SqlClient,
    { personId, runId }: LogEventCause,
    { appId, status, content, recipients }: Pick<NewMessage, "appId" | "status" | "content" | "recipients">,
    purpose: MessagePurpose,
  ): Promise<{ id: number; data: Record<string, unknown> }> {
    const { outbox, now } = this.options;
    const row: NewMessage = { appId, status, content, recipients, reference: randomUUID(), runId, personId };
    const id = await outbox.accept(executor, row, new Date(now()));
    const subjectField = content.kind === "email" && mayLogSubject(purpose) ? { subject: content.subject } : {};
    return { id, data: { ...createMessageEventData(id, recipients, null), ...subjectField } };
  }

  private async storeHookEvent(
    executor: SqlClient,
    emitter: LogEventCause,
    { appId, ...entry }: HookEntryReference,
    kind: ValidatedMessage["kind"],
    data: Record<string, unknown>,
  ): Promise<void> {
    const ids = { userId: null, appNotificationId: null, sessionId: null, ...entry };
    await this.options.logEvents.store(emitter, appId, { type: `${kind}.dataSourceHook`, data, ...ids }, executor);
  }

  /**
   * Returns "queued" if a mail server or provider for the message is configured, otherwise "kept" (stored, not sent).
   * @throws SETTINGS_INVALID if the app's setting for the mail server or provider is invalid
   */
  async selectMessageStatus(appId: number, kind: ValidatedMessage["kind"]): Promise<MessageReceipt["status"]> {
    const { destinations } = this.options;
    try {
      return (await (kind === "email" ? destinations.findMailServer(appId) : destinations.findSmsProvider(appId)))
        ? "queued"
        : "kept";
    } catch (error) {
      if (!(error instanceof InvalidDestinationError)) throw error;
      throw new ActionError("SETTINGS_INVALID", error.message);
    }
  }

  /**
   * Counts new messages of one kind (e-mail or text message) in the limits of received data. Returns a function that stores these
   * messages and their log events.
   * @throws SETTINGS_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async prepare(
    emitter: LogEventCause,
    appId: number,
    messages: readonly ValidatedMessage[],
    purpose: MessagePurpose,
  ): Promise<(executor: SqlClient) => Promise<MessageReceipt[]>> {
    const { outbox, logEvents, receivedDataLimiter } = this.options;
    const status = await this.selectMessageStatus(appId, messages[0]!.kind);
    const rows = messages.map((message) => ({
      content: toMessageContent(message),
      recipients: createRecipients(message),
    }));
    receivedDataLimiter.countRows(emitter, appId, Buffer.byteLength(JSON.stringify(rows)), 2 * rows.length);
    return async (executor) => {
      const receipts: MessageReceipt[] = [];
      for (const row of rows) {
        const { id, data } = await this.writeMessage(executor, emitter, { appId, status, ...row }, purpose);
        await logEvents.emit(executor, emitter, appId, { type: `${row.content.kind}.${purpose}`, data });
        receipts.push({ id, status });
      }
      if (status === "queued") await outbox.announce(executor);
      return receipts;
    };
  }

  /** Stores the message that a data source's hook sends, and its log event. `executor` is the transaction that writes the entry. */
  async storeHookMessage(
    executor: SqlClient,
    emitter: LogEventCause,
    entry: HookEntryReference,
    message: ValidatedMessage,
    status: MessageReceipt["status"],
  ): Promise<void> {
    const row = {
      appId: entry.appId,
      status,
      content: toMessageContent(message),
      recipients: createRecipients(message),
    };
    const { data } = await this.writeMessage(executor, emitter, row, "dataSourceHook");
    await this.storeHookEvent(executor, emitter, entry, message.kind, data);
    if (status === "queued") await this.options.outbox.announce(executor);
  }

  /** Stores a log event which says that a hook's message cannot be sent, or not to all its addresses. `fault` is the reason. */
  storeHookRefusal(
    executor: SqlClient,
    emitter: LogEventCause,
    entry: HookEntryReference,
    kind: ValidatedMessage["kind"],
    fault: string,
  ) {
    return this.storeHookEvent(
      executor,
      emitter,
      entry,
      kind,
      createMessageEventData(null, [], fault) as Record<string, unknown>,
    );
  }
}
