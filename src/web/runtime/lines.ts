/** Reads an answer of the service line by line, each when it arrives. Sends nothing. */
import type { Reply } from "./service-way.js";

interface TextReader {
  /** Reads the next part of an answer's text; null at its end. */
  next(): Promise<string | null>;
  /** Stops reading, which ends the request. */
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
    // An answer that broke off rejects: its request has ended already.
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
 * JSON values of the lines. Rejects if the answer breaks off, or if a line is not JSON. Leaving early ends the request;
 * the request of a network isolate ends with its run.
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
