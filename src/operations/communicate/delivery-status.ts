/** Decides which delivery status replaces another, and computes the status of a message from the statuses of its recipients. */
import type { MessageStatus, Recipient, StoredDeliveryOutcome } from "./outbox.js";

/** Rank of each message status. A report changes the status of a message only if the new status has a higher rank. */
export const STATUS_RANKS: Partial<Record<MessageStatus, number>> = {
  sent: 0,
  unknown: 0,
  delivered: 1,
  rejected: 2,
  bounced: 2,
  complained: 3,
};

/** True if a reported status with this rank replaces `status`. A recipient without a status has the rank of a sent message. */
export const isAdvance = (rank: number, status: MessageStatus = "sent"): boolean => rank > STATUS_RANKS[status]!;

/**
 * Returns the status of a message whose attempts have ended: the worst status among its accepted recipients; null if the server accepted
 * no recipient. Delivery reports can arrive between two attempts, so this status is not always `sent`.
 */
export function getStatusOfAccepted(
  recipients: readonly Recipient[],
): Exclude<NonNullable<Recipient["status"]>, "rejected"> | null {
  const statuses = recipients.flatMap(({ status }) => (status && status !== "rejected" ? [status] : []));
  return statuses.sort((a, b) => STATUS_RANKS[b]! - STATUS_RANKS[a]!)[0] ?? null;
}

/**
 * Adds statuses from delivery reports, which can arrive during an attempt, to the outcome of this attempt. If the outcome's status was
 * computed from the recipients, computes it again.
 * @param stored recipients as the database has them now; a stored status replaces the status in `outcome`
 */
export function addReportedStatuses(
  outcome: StoredDeliveryOutcome,
  stored: readonly Recipient[],
): StoredDeliveryOutcome {
  const recipients = outcome.recipients.map((recipient, index) => {
    const storedRecipient = stored[index];
    return storedRecipient?.status ? storedRecipient : recipient;
  });
  const isStatusOfAccepted = outcome.status === getStatusOfAccepted(outcome.recipients);
  if (!isStatusOfAccepted) return { ...outcome, recipients };
  return { ...outcome, status: getStatusOfAccepted(recipients) ?? "rejected", recipients };
}
