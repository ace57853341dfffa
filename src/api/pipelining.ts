/**
 * Passes the bytes of each connection to Node's HTTP parser so that the parser handles one request at a time. A client may send several
 * requests without waiting for responses (pipelining); Node would start all of them at once.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const HEAD_END_MARK = "\r\n\r\n";
/** Number of bytes that the parser gets in one step while the request's length is unknown (chunked body, incomplete headers). */
const SLICE_BYTES = 1_024;

type ParseBytes = (bytes: Buffer) => void;

class SequentialRequestFeed {
  /** Bytes that the connection has received but the HTTP parser has not. */
  private unparsedBytes: Buffer = Buffer.alloc(0);
  private currentRequest: IncomingMessage | null = null;
  private isAnswered = true;
  /** Number of bytes of the current body that the parser has not received; null if the body's length is unknown. */
  private remainingBodyBytes: number | null = null;
  /** Functions that start requests which arrived early: their first bytes were in the same slice as the end of the previous request. */
  private readonly earlyRequests: (() => void)[] = [];

  constructor(
    private readonly socket: Socket,
    private readonly parse: ParseBytes,
  ) {
    socket.off("data", parse);
    socket.on("data", this.receive).on("resume", this.feed);
  }

  private readonly receive = (chunk: Buffer): void => {
    this.unparsedBytes = this.unparsedBytes.length === 0 ? chunk : Buffer.concat([this.unparsedBytes, chunk]);
    this.feed();
  };

  /** True while the next request must wait: the current request has arrived completely but has no response yet. */
  private isBusy(): boolean {
    return this.currentRequest?.complete === true && !this.isAnswered;
  }

  /** Returns how many bytes of `unparsedBytes` the parser may get in the next step. */
  private computeNextSliceLength(): number {
    if (this.currentRequest && !this.currentRequest.complete) return this.remainingBodyBytes || SLICE_BYTES;
    const headEnd = this.unparsedBytes.indexOf(HEAD_END_MARK);
    return headEnd === -1 ? SLICE_BYTES : headEnd + HEAD_END_MARK.length;
  }

  private readonly feed = (): void => {
    const { socket } = this;
    while (this.unparsedBytes.length > 0 && !socket.destroyed && !socket.isPaused() && !this.isBusy()) {
      const slice = this.unparsedBytes.subarray(0, this.computeNextSliceLength());
      this.unparsedBytes = this.unparsedBytes.subarray(slice.length);
      if (this.currentRequest && !this.currentRequest.complete && this.remainingBodyBytes !== null)
        this.remainingBodyBytes -= slice.length;
      this.parse(slice);
      // After an upgrade to a websocket, the HTTP parser no longer reads the connection.
      if (!(socket as Socket & { parser?: object | null }).parser) {
        this.releaseConnection();
        return;
      }
    }
    // A paused connection does not report that the client has disconnected. So it is paused only while bytes of a later request wait.
    if (this.unparsedBytes.length > 0 && this.isBusy()) socket.pause();
  };

  private releaseConnection(): void {
    this.socket.off("data", this.receive).off("resume", this.feed);
    if (this.unparsedBytes.length > 0 && !this.socket.destroyed) this.socket.unshift(this.unparsedBytes);
    this.unparsedBytes = Buffer.alloc(0);
  }

  private beginRequest(request: IncomingMessage, response: ServerResponse, handle: RequestListener): void {
    this.currentRequest = request;
    this.isAnswered = false;
    const { "transfer-encoding": encoding, "content-length": length } = request.headers;
    this.remainingBodyBytes = encoding === undefined && this.earlyRequests.length === 0 ? Number(length ?? 0) : null;
    response.once("close", () => this.handleResponseEnd());
    handle(request, response);
  }

  /** Handles the request now if no earlier request of this connection is in progress, otherwise after the earlier response. */
  acceptRequest(request: IncomingMessage, response: ServerResponse, handle: RequestListener): void {
    if (this.isAnswered) this.beginRequest(request, response, handle);
    else this.earlyRequests.push(() => this.beginRequest(request, response, handle));
  }

  private handleResponseEnd(): void {
    this.isAnswered = true;
    if (this.socket.destroyed) return;
    const startNextRequest = this.earlyRequests.shift();
    if (startNextRequest) startNextRequest();
    else if (this.unparsedBytes.length > 0) {
      if (this.socket.isPaused()) this.socket.resume();
      else this.feed();
    }
  }
}

/** Registers `handle` for the requests of the server. Each connection handles one request at a time. */
export function handleRequestsOneByOne(server: Server, handle: RequestListener): void {
  const feeds = new WeakMap<Socket, SequentialRequestFeed>();
  server.on("connection", (socket: Socket) => {
    const [parse] = socket.listeners("data") as ParseBytes[];
    if (!parse)
      throw new Error(
        "this version of Node parses HTTP connections in an unknown way; use a supported version of Node",
      );
    feeds.set(socket, new SequentialRequestFeed(socket, parse));
  });
  server.on("request", (request, response) => {
    const feed = feeds.get(request.socket);
    if (feed) feed.acceptRequest(request, response, handle);
    else handle(request, response);
  });
}
