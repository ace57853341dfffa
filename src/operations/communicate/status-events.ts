/**
 * Emits log events about the delivery of e-mails (specification, Events), in the transaction that stores the status.
 */
import type { Executor } from "../../data/database.js";
import type { Emitter, LogEvents } from "../records/log-events.js";
import type { ClaimedMessage, DeliveryOutcome, MessageStatus, Recipient } from "./outbox.js";

const NAMED_RECIPIENTS = 10;

/**
 * Returns the emitter of a status event. The event has the same cause as the message, so that the limit on chains of
 * runs also counts runs that messages start.
 */
export const emitterOf = ({ runId, personId }: Pick<ClaimedMessage, "runId" | "personId">): Emitter => ({
  kind: "api",
  credentialId: 0,
  personId,
  runId,
});

/** Type of the event by the new status of the message. */
export const EVENT_BY_STATUS: Partial<Record<MessageStatus | "delayed", string>> = {
  delivered: "email.delivered",
  delayed: "email.delayed",
  bounced: "email.bounced",
  complained: "email.complaint",
  rejected: "email.rejected",
};

export function eventData(messageId: number | null, recipients: readonly Recipient[], detail: string | null): object {
  const to = recipients.slice(0, NAMED_RECIPIENTS).map(({ address }) => address);
  return { messageId, to, recipients: recipients.length, detail };
}

/**
 * Emits `email.delayed` after the first temporary refusal, and `email.rejected` if recipients were refused permanently.
 */
export async function emitStatus(
  logEvents: LogEvents,
  executor: Executor,
  message: ClaimedMessage,
  settlement: DeliveryOutcome,
): Promise<void> {
  const { id, appId, content, recipients: before, wasDelayed } = message;
  if (content.kind !== "email") return;
  const { status, recipients, detail } = settlement;
  const settledBefore = new Set(before.filter((recipient) => recipient.status).map(({ address }) => address));
  const newlyRejected = recipients.filter(
    (recipient) => recipient.status === "rejected" && !settledBefore.has(recipient.address),
  );
  const emitEvent = (type: string, of: readonly Recipient[]) =>
    logEvents.emit(executor, emitterOf(message), appId, { type, data: eventData(id, of, detail) });
  if (status === "queued" && !wasDelayed)
    await emitEvent(
      "email.delayed",
      recipients.filter((recipient) => !recipient.status),
    );
  if (newlyRejected.length > 0) await emitEvent("email.rejected", newlyRejected);
  else if (status === "rejected") await emitEvent("email.rejected", recipients);
}
