/** Texts for the status of a message. */
import type { MessageStatus } from "../shared/model.js";

/** The service calls a message `kept` that it stores and does not send, because no server or provider is configured. */
export const statusLabel = (status: MessageStatus): string => (status === "kept" ? "stored" : status);
