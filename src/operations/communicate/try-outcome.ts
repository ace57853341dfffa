/** Outcomes of one attempt to send a message, for all transports. */
import type { ClaimedMessage, MessageStatus, Recipient } from "./outbox.js";

export type TryOutcome =
  | {
      kind: "done";
      status: Extract<MessageStatus, "sent" | "rejected" | "failed" | "unknown">;
      recipients: Recipient[];
      detail: string;
      providerId?: string | null;
    }
  /** Certainly refused, but only temporarily. */
  | { kind: "later"; recipients: Recipient[]; detail: string }
  /** Not sent, because another process holds the message. */
  | { kind: "fenced" };

/** Returns the outcome of a message that cannot be sent with the current settings. */
export function failedOutcome({ recipients }: ClaimedMessage, detail: string): TryOutcome {
  return { kind: "done", status: "failed", recipients, detail };
}
