/**
 * Sends HTTP/1.1 requests one after the other over one persistent connection, with minimal overhead, so that the load generator uses little
 * processor time. Supports only responses with a Content-Length.
 */
import { once } from "node:events";
import { connect } from "node:net";

const HEADERS_END = "\r\n\r\n";
const CONTENT_LENGTH_PATTERN = /^content-length: *(\d+)\r$/im;

export interface PersistentConnection {
  /** Sends a complete request. @returns head and body of the response, one character per byte */
  send(request: Buffer): Promise<string>;
  end(): void;
}

/** Returns the bytes of a complete POST request. */
export function encodePostRequest(
  { host, pathname, search }: URL,
  headers: Record<string, string>,
  body: string,
): Buffer {
  const allHeaders = { host, ...headers, "content-length": String(Buffer.byteLength(body)) };
  const lines = [
    `POST ${pathname}${search} HTTP/1.1`,
    ...Object.entries(allHeaders).map((header) => header.join(": ")),
  ];
  return Buffer.from(lines.join("\r\n") + HEADERS_END + body);
}

/** Returns the total length of a response from its first bytes, or null while its head is incomplete. */
function computeResponseLength(received: string): number | null {
  const end = received.indexOf(HEADERS_END);
  if (end < 0) return null;
  const length = CONTENT_LENGTH_PATTERN.exec(received.slice(0, end + 2))?.[1];
  if (length === undefined) throw new Error(`the response has no Content-Length (got ${received.slice(0, 500)})`);
  return end + HEADERS_END.length + Number(length);
}

export async function openConnection({ hostname, port }: URL): Promise<PersistentConnection> {
  const socket = connect(Number(port), hostname).setNoDelay().setEncoding("latin1");
  await once(socket, "connect");
  let received = "";
  let length: number | null = null;
  let pendingResponse: PromiseWithResolvers<string> | null = null;

  socket.on("data", (part: string) => {
    received += part;
    try {
      length ??= computeResponseLength(received);
    } catch (error) {
      socket.destroy(error as Error);
    }
    if (length === null || received.length < length) return;
    pendingResponse?.resolve(received);
    received = "";
    length = null;
  });
  socket.once("error", (error) => pendingResponse?.reject(error));
  socket.once("close", () => pendingResponse?.reject(new Error("the connection was closed")));

  return {
    send(request) {
      if (socket.destroyed) throw new Error("the connection was closed");
      pendingResponse = Promise.withResolvers();
      socket.write(request);
      return pendingResponse.promise;
    },
    end: () => void socket.destroy(),
  };
}
