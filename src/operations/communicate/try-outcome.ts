/** Types of the outcome of one attempt to send a message, the same for e-mail and text messages. */
import type { ClaimedMessage, MessageStatus, Recipient } from "./outbox.js";

export type TryOutcome =
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
