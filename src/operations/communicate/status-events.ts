/** Emits log events about the delivery of e-mails (specification, Events), in the transaction that stores the status. */
import type { SqlClient } from "../../data/database.js";
import type { LogEventCause, LogEventStore } from "../records/log-events.js";
import type { ClaimedMessage, MessageStatus, Recipient, StoredDeliveryOutcome } from "./outbox.js";

const MAX_LOGGED_RECIPIENTS = 10;

/**
 * Returns the cause of a log event about a message: the run and the person that sent the message. Each is null if there is none. If the
 * event starts runs, these runs continue the chain of the run that sent the message. So the limit on chains of runs applies to them.
 */
export const toMessageEventCause = ({
  runId,
  personId,
}: Pick<ClaimedMessage, "runId" | "personId">): LogEventCause => ({
  kind: "api",
  credentialId: 0,
  personId,
  runId,
});

export const EVENT_TYPE_BY_MESSAGE_STATUS: Partial<Record<MessageStatus | "delayed", string>> = {
  delivered: "email.delivered",
  delayed: "email.delayed",
  bounced: "email.bounced",
  complained: "email.complaint",
  rejected: "email.rejected",
};

export function createMessageEventData(
  messageId: number | null,
  recipients: readonly Recipient[],
  detail: string | null,
): object {
  const to = recipients.slice(0, MAX_LOGGED_RECIPIENTS).map(({ address }) => address);
  return { messageId, to, recipients: recipients.length, detail };
}

/**
 * Emits the log event `email.delayed` after the first temporary rejection of an e-mail, and `email.rejected` if the
 * server permanently rejected recipients.
 */
export async function emitMessageStatusEvent(
  logEvents: LogEventStore,
  executor: SqlClient,
  message: ClaimedMessage,
  result: StoredDeliveryOutcome,
): Promise<void> {
  const { id, appId, content, recipients: before, wasDelayed } = message;
  if (content.kind !== "email") return;
  const { status, recipients, detail } = result;
  const settledAddresses = new Set(before.filter((recipient) => recipient.status).map(({ address }) => address));
  const newlyRejected = recipients.filter(
    (recipient) => recipient.status === "rejected" && !settledAddresses.has(recipient.address),
  );
  const emitEvent = (type: string, affectedRecipients: readonly Recipient[]) =>
    logEvents.emit(executor, toMessageEventCause(message), appId, {
      type,
      data: createMessageEventData(id, affectedRecipients, detail),
    });
  if (status === "queued" && !wasDelayed)
    await emitEvent(
      "email.delayed",
      recipients.filter((recipient) => !recipient.status),
    );
  if (newlyRejected.length > 0) await emitEvent("email.rejected", newlyRejected);
  else if (status === "rejected") await emitEvent("email.rejected", recipients);
}
