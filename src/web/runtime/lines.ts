/** Reads an answer of the service line by line, each when it arrives. Sends nothing. */
import type { Reply } from "./service-way.js";

/** Reads the next part of an answer's text; null at its end. */
function readerOf(reply: Reply): () => Promise<string | null> {
  if (reply.next) return reply.next;
  const reader = reply.body?.getReader();
  if (reader) {
    const decoder = new TextDecoder();
    return async () => {
      const { value, done } = await reader.read();
      return done ? null : decoder.decode(value, { stream: true });
    };
  }
  let isRead = false;
  return async () => {
    if (isRead) return null;
    isRead = true;
    return reply.text();
  };
}

/** JSON values of the lines. Rejects if the answer breaks off, or if a line is not JSON. */
export async function* linesOf(reply: Reply): AsyncGenerator<unknown, void, void> {
  const next = readerOf(reply);
  let rest = "";
  for (let part = await next(); part !== null; part = await next()) {
    const lines = (rest + part).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line);
  }
  if (rest !== "") throw new Error("the last line is not complete");
}
