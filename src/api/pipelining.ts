/**
 * Feeds the HTTP parser of each connection one request at a time, so that a pipelined request waits as bytes in the
 * socket until the previous request has been answered. Without this, Node would parse and start all requests that a
 * client sends in one go.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const HEAD_END = "\r\n\r\n";
/** Number of bytes that the parser gets at once if the end of a request cannot be computed: for a chunked body, or an incomplete head. */
const SLICE_BYTES = 1_024;

type ParseBytes = (bytes: Buffer) => void;

/** Passes the received bytes of one connection to the HTTP parser, one request at a time. */
class RequestFeed {
  /** Bytes that were received but not yet passed to the HTTP parser. */
  private rest: Buffer = Buffer.alloc(0);
  private current: IncomingMessage | null = null;
  private isAnswered = true;
  /** Bytes of the current body that the parser has not received; null if the length is unknown. */
  private bodyLeft: number | null = null;
  /**
   * Requests that began in the same slice as the end of the previous request. They are rare: the slice is so small that it holds few of
   * them.
   */
  private readonly early: (() => void)[] = [];

  constructor(
    private readonly socket: Socket,
    private readonly parse: ParseBytes,
  ) {
    socket.off("data", parse);
    socket.on("data", this.receive).on("resume", this.feed);
  }

  private readonly receive = (chunk: Buffer): void => {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    this.feed();
  };

  /** True while the next request must wait: the current one has arrived but has no response yet. */
  private isBusy(): boolean {
    return this.current?.complete === true && !this.isAnswered;
  }

  /** Returns the number of waiting bytes that belong to the current request. */
  private sliceLength(): number {
    if (this.current && !this.current.complete) return this.bodyLeft || SLICE_BYTES;
    const headEnd = this.rest.indexOf(HEAD_END);
    return headEnd === -1 ? SLICE_BYTES : headEnd + HEAD_END.length;
  }

  private readonly feed = (): void => {
    const { socket } = this;
    while (this.rest.length > 0 && !socket.destroyed && !socket.isPaused() && !this.isBusy()) {
      const slice = this.rest.subarray(0, this.sliceLength());
      this.rest = this.rest.subarray(slice.length);
      if (this.current && !this.current.complete && this.bodyLeft !== null) this.bodyLeft -= slice.length;
      this.parse(slice);
      // After an upgrade the parser has released the socket.
      if (!(socket as Socket & { parser?: object | null }).parser) {
        this.release();
        return;
      }
    }
    // Only an unpaused socket reports the end of its peer, so it is paused only while bytes wait.
    if (this.rest.length > 0 && this.isBusy()) socket.pause();
  };

  private release(): void {
    this.socket.off("data", this.receive).off("resume", this.feed);
    if (this.rest.length > 0 && !this.socket.destroyed) this.socket.unshift(this.rest);
    this.rest = Buffer.alloc(0);
  }

  private beginRequest(request: IncomingMessage, response: ServerResponse, handle: RequestListener): void {
    this.current = request;
    this.isAnswered = false;
    const { "transfer-encoding": encoding, "content-length": length } = request.headers;
    this.bodyLeft = encoding === undefined && this.early.length === 0 ? Number(length ?? 0) : null;
    response.once("close", () => this.answered());
    handle(request, response);
  }

  /** Handles the request now, or as soon as the previous request on this connection has been answered. */
  accept(request: IncomingMessage, response: ServerResponse, handle: RequestListener): void {
    if (this.isAnswered) this.beginRequest(request, response, handle);
    else this.early.push(() => this.beginRequest(request, response, handle));
  }

  private answered(): void {
    this.isAnswered = true;
    if (this.socket.destroyed) return;
    const next = this.early.shift();
    if (next) next();
    else if (this.rest.length > 0) {
      if (this.socket.isPaused()) this.socket.resume();
      else this.feed();
    }
  }
}

/** Registers `handle` for the requests of the server, one at a time on each connection. */
export function handleInTurn(server: Server, handle: RequestListener): void {
  const feeds = new WeakMap<Socket, RequestFeed>();
  server.on("connection", (socket: Socket) => {
    const [parse] = socket.listeners("data") as ParseBytes[];
    if (!parse)
      throw new Error(
        "this version of Node parses HTTP connections in an unknown way; use a supported version of Node",
      );
    feeds.set(socket, new RequestFeed(socket, parse));
  });
  server.on("request", (request, response) => {
    const feed = feeds.get(request.socket);
    if (feed) feed.accept(request, response, handle);
    else handle(request, response);
  });
}
