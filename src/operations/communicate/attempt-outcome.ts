/** Type of the outcome of one attempt to send an e-mail or a text message. */
import type { ClaimedMessage, MessageStatus, Recipient } from "./outbox.js";

export type DeliveryAttemptOutcome =
  /** Final outcome: the service does not try again to send the message. */
  | {
      kind: "done";
      status: Exclude<MessageStatus, "kept" | "queued">;
      recipients: Recipient[];
      detail: string;
      providerId?: string | null;
    }
  /** Temporary rejection: the message was not sent to all recipients, and a later attempt may succeed. */
  | { kind: "later"; recipients: Recipient[]; detail: string }
  /** This process no longer has its lease or its claim on the message, so it did not send the message. */
  | { kind: "fenced" };

/** Returns a final outcome for a message that cannot be sent with the app's current settings. */
export function createFailedDeliveryOutcome({ recipients }: ClaimedMessage, detail: string): DeliveryAttemptOutcome {
  return { kind: "done", status: "failed", recipients, detail };
}
