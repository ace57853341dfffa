/** Label for the status of a message. */
import type { MessageStatus } from "../shared/model.js";

/** Returns the label of a status. The status `kept` means: stored but not sent, because the app has no server or provider for messages. */
export const getMessageStatusLabel = (status: MessageStatus): string => (status === "kept" ? "stored" : status);
