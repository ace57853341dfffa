/**
 * One kept connection, which is asked one thing after the other by HTTP/1.1 and does hardly anything for it: what a caller computes for
 * itself is no part of what it measures. Knows only answers that say how long they are.
 */
import { once } from "node:events";
import { connect } from "node:net";

const HEAD_END = "\r\n\r\n";
const LENGTH = /^content-length: *(\d+)\r$/im;

export interface Connection {
  /** Sends a whole request. @returns head and body of its answer, a character a byte */
  ask(request: Buffer): Promise<string>;
  end(): void;
}

/** A whole request, by POST. */
export function requestOf({ host, pathname, search }: URL, headers: Record<string, string>, body: string): Buffer {
  const all = { host, ...headers, "content-length": String(Buffer.byteLength(body)) };
  const lines = [`POST ${pathname}${search} HTTP/1.1`, ...Object.entries(all).map((header) => header.join(": "))];
  return Buffer.from(lines.join("\r\n") + HEAD_END + body);
}

/** How many characters the answer has that begins so; null: that has not come yet. */
function lengthOf(received: string): number | null {
  const end = received.indexOf(HEAD_END);
  if (end < 0) return null;
  const length = LENGTH.exec(received.slice(0, end + 2))?.[1];
  if (length === undefined) throw new Error(`an answer without its length: ${received.slice(0, 500)}`);
  return end + HEAD_END.length + Number(length);
}

export async function openConnection({ hostname, port }: URL): Promise<Connection> {
  const socket = connect(Number(port), hostname).setNoDelay().setEncoding("latin1");
  await once(socket, "connect");
  let received = "";
  let length: number | null = null;
  let answer: PromiseWithResolvers<string> | null = null;

  socket.on("data", (part: string) => {
    received += part;
    try {
      length ??= lengthOf(received);
    } catch (error) {
      socket.destroy(error as Error);
    }
    if (length === null || received.length < length) return;
    answer?.resolve(received);
    received = "";
    length = null;
  });
  socket.once("error", (error) => answer?.reject(error));
  socket.once("close", () => answer?.reject(new Error("the connection was closed")));

  return {
    ask(request) {
      if (socket.destroyed) throw new Error("the connection was closed");
      answer = Promise.withResolvers();
      socket.write(request);
      return answer.promise;
    },
    end: () => void socket.destroy(),
  };
}
