/** Reads a response of the service line by line, without waiting for the whole response. */
import type { ServiceReply } from "./service-transport.js";

interface TextReader {
  /** Returns the next part of the text, or null at its end. */
  next(): Promise<string | null>;
  /** Stops reading, which cancels the request. */
  cancel?(): Promise<void> | void;
}

function createTextReader(reply: ServiceReply): TextReader {
  if (reply.next) return { next: reply.next, cancel: () => reply.cancel?.() };
  const reader = reply.body?.getReader();
  if (reader) {
    const decoder = new TextDecoder();
    const next = async () => {
      const { value, done } = await reader.read();
      return done ? null : decoder.decode(value, { stream: true });
    };
    // If the response was interrupted, `cancel` rejects. This is ignored, because the request has already ended.
    return { next, cancel: () => reader.cancel().catch(() => undefined) };
  }
  let isRead = false;
  const next = async () => {
    if (isRead) return null;
    isRead = true;
    return reply.text();
  };
  return { next };
}

/**
 * Yields the JSON value of each line. Rejects if the response is interrupted or a line is not JSON. Cancels the request if the caller stops
 * reading.
 */
export async function* parseJsonLines(reply: ServiceReply): AsyncGenerator<unknown, void, void> {
  const reader = createTextReader(reply);
  let unreadText = "";
  try {
    for (let textPart = await reader.next(); textPart !== null; textPart = await reader.next()) {
      const lines = (unreadText + textPart).split("\n");
      unreadText = lines.pop()!;
      for (const line of lines) yield JSON.parse(line);
    }
  } finally {
    await reader.cancel?.();
  }
  if (unreadText !== "") throw new Error("the response ended before its last line was complete");
}
