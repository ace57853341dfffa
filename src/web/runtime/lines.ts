/** Reads a response of the service line by line, each line when it arrives. */
import type { Reply } from "./service-way.js";

interface TextReader {
  /** Returns the next part of the text, or null at its end. */
  next(): Promise<string | null>;
  /** Stops reading, which cancels the request. */
  cancel?(): Promise<void>;
}

function readerOf(reply: Reply): TextReader {
  if (reply.next) return { next: reply.next };
  const reader = reply.body?.getReader();
  if (reader) {
    const decoder = new TextDecoder();
    const next = async () => {
      const { value, done } = await reader.read();
      return done ? null : decoder.decode(value, { stream: true });
    };
    // An interrupted response rejects here; its request has already ended.
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
 * Yields the JSON value of each line. Rejects if the response is interrupted or a line is not JSON. If the caller stops reading, the
 * request is cancelled; in a language isolate it ends with the run.
 */
export async function* linesOf(reply: Reply): AsyncGenerator<unknown, void, void> {
  const reader = readerOf(reply);
  let rest = "";
  try {
    for (let part = await reader.next(); part !== null; part = await reader.next()) {
      const lines = (rest + part).split("\n");
      rest = lines.pop()!;
      for (const line of lines) yield JSON.parse(line);
    }
  } finally {
    await reader.cancel?.();
  }
  if (rest !== "") throw new Error("the last line is not complete");
}
