/** Values in the URL of the outbox, such as `#/1/outbox?status=failed` and `#/1/outbox/email`. */
import type { MessageStatus } from "../shared/model.js";

export const MESSAGE_STATUSES: readonly MessageStatus[] = [
  "kept",
  "queued",
  "sent",
  "delivered",
  "rejected",
  "bounced",
  "complained",
  "failed",
  "unknown",
];

/** Ways of delivery, each with a form. */
export const CHANNELS = ["email", "sms"] as const;
