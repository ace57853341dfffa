/**
 * One persistent HTTP/1.1 connection for one request after the other, with minimal overhead, because the caller's own work must not be
 * measured. Supports responses with a Content-Length only.
 */
import { once } from "node:events";
import { connect } from "node:net";

const HEAD_END = "\r\n\r\n";
const LENGTH = /^content-length: *(\d+)\r$/im;

export interface Connection {
  /** Sends a whole request. @returns head and body of its response, one character per byte */
  ask(request: Buffer): Promise<string>;
  end(): void;
}

/** A whole POST request. */
export function requestOf({ host, pathname, search }: URL, headers: Record<string, string>, body: string): Buffer {
  const all = { host, ...headers, "content-length": String(Buffer.byteLength(body)) };
  const lines = [`POST ${pathname}${search} HTTP/1.1`, ...Object.entries(all).map((header) => header.join(": "))];
  return Buffer.from(lines.join("\r\n") + HEAD_END + body);
}

/** Length of the response with this beginning; null if the head is incomplete. */
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
