/** What one try of a message came to, whatever it travelled by. Types and one word for the commonest failure. */
import type { HeldMessage, MessageStatus, Recipient } from "./outbox.js";

export type TryOutcome =
  | {
      kind: "done";
      status: Extract<MessageStatus, "sent" | "rejected" | "failed" | "unknown">;
      recipients: Recipient[];
      detail: string;
      providerId?: string | null;
    }
  /** Certainly refused for the moment. */
  | { kind: "later"; recipients: Recipient[]; detail: string }
  /** Another process holds the message; nothing was sent. */
  | { kind: "fenced" };

/** It cannot be sent as things are set. */
export function failed({ recipients }: HeldMessage, detail: string): TryOutcome {
  return { kind: "done", status: "failed", recipients, detail };
}
