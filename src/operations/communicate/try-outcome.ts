/** Type of the outcome of one attempt to send an e-mail or a text message. */
import type { ClaimedMessage, MessageStatus, Recipient } from "./outbox.js";

export type TryOutcome =
  /** Final status: the message is not sent again. */
  | {
      kind: "done";
      status: Extract<MessageStatus, "sent" | "rejected" | "failed" | "unknown">;
      recipients: Recipient[];
      detail: string;
      providerId?: string | null;
    }
  /** Refused for now: nothing was sent, and a later attempt may succeed. */
  | { kind: "later"; recipients: Recipient[]; detail: string }
  /** Another process holds the message, so that this process did not send it. */
  | { kind: "fenced" };

/** Returns the outcome of a message that cannot be sent with the current settings. */
export function failedOutcome({ recipients }: ClaimedMessage, detail: string): TryOutcome {
  return { kind: "done", status: "failed", recipients, detail };
}
