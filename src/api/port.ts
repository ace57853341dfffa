/** The HTTP server at the service's port. Limits how long a request may take to arrive, and how many connections may send nothing. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { type HttpEntryPoint, NO_HOST_CODE } from "./health.js";
import { handleRequestsOneByOne } from "./pipelining.js";

export interface HttpServerLimits {
  /** Maximum time in milliseconds to receive the head of a request. */
  headTimeoutMs: number;
  /** Maximum time in milliseconds to receive a whole request that is not an upload. */
  requestTimeoutMs: number;
  /** Maximum time in milliseconds to receive a whole upload. */
  uploadTimeoutMs: number;
  /** Interval in milliseconds at which Node looks for requests that exceed headTimeoutMs or uploadTimeoutMs. */
  checkIntervalMs: number;
  /** Maximum number of open connections. */
  connectionsMax: number;
  /** A connection that has sent nothing is closed when the same address has opened this number of newer connections. */
  silentConnectionsPerAddress: number;
}

/** Default limits. `connectionsMax` leaves file descriptors for the database. 512 connections of an address are enough for a busy proxy. */
const DEFAULT_LIMITS: HttpServerLimits = {
  headTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  uploadTimeoutMs: 900_000,
  checkIntervalMs: 2_000,
  connectionsMax: 30_000,
  silentConnectionsPerAddress: 512,
};

/** Closes an old connection that has sent nothing if its address opens too many newer connections. */
class SilentConnectionLimiter {
  private readonly socketsByAddress = new Map<string, Set<Socket>>();

  constructor(private readonly maxSockets: number) {}

  private removeSocket(socket: Socket, address: string): void {
    const silentSockets = this.socketsByAddress.get(address);
    silentSockets?.delete(socket);
    if (silentSockets?.size === 0) this.socketsByAddress.delete(address);
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const silentSockets = this.socketsByAddress.get(address) ?? new Set();
    this.socketsByAddress.set(address, silentSockets.add(socket));
    socket.once("close", () => this.removeSocket(socket, address));
    // If the address has too many connections, stops tracking the oldest, and closes it if it has sent nothing.
    const [oldest] = silentSockets;
    if (silentSockets.size <= this.maxSockets || !oldest) return;
    this.removeSocket(oldest, address);
    if (oldest.bytesRead === 0) oldest.destroy();
  }
}

/** True for requests that may take longer to arrive: upload forms, imports of files, and commits of many entries. */
const isUploadRequest = ({ headers, url = "" }: IncomingMessage): boolean =>
  (headers["content-type"]?.toLowerCase().startsWith("multipart/form-data") ?? false) ||
  /^\/v1\/apps\/\d+\/data-sources\/[^/?]+\/(?:import|commit)(?:\?|$)/.test(url);

/**
 * True for requests that open a websocket. Every other `Upgrade` is ignored, as HTTP allows. For example, Java's HttpClient and
 * `curl --http2` offer `h2c` with their first request.
 */
const opensWebsocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

/**
 * Applies the time limit `limitMs` to all requests except uploads. Node has a single limit for all requests, so Node's limit is that of
 * uploads. Also rejects HTTP/1.1 requests without the header Host.
 */
function limitRequestTime(
  { handleRequest, rejectInvalidRequest }: Pick<HttpEntryPoint, "handleRequest" | "rejectInvalidRequest">,
  limitMs: number,
): RequestListener {
  const timeoutError = Object.assign(new Error("the service did not receive the whole request in time"), {
    code: "ERR_HTTP_REQUEST_TIMEOUT",
  });
  return (request, response) => {
    const { headers } = request;
    if (headers.host === undefined && request.httpVersion === "1.1") {
      rejectInvalidRequest(
        Object.assign(new Error("a request has no Host header"), { code: NO_HOST_CODE }),
        request.socket,
      );
      return;
    }
    const hasBody = headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
    if (hasBody && !isUploadRequest(request)) {
      const timer = setTimeout(() => {
        if (request.complete) return;
        if (response.headersSent) request.socket.destroy();
        else rejectInvalidRequest(timeoutError, request.socket);
        request.socket.destroySoon();
      }, limitMs);
      request.once("close", () => clearTimeout(timer)).once("end", () => clearTimeout(timer));
    }
    handleRequest(request, response);
  };
}

export function createHttpServer(
  entryPoint: Pick<HttpEntryPoint, "handleRequest" | "rejectInvalidRequest">,
  limits: HttpServerLimits = DEFAULT_LIMITS,
): Server {
  const server: Server = createServer({
    headersTimeout: limits.headTimeoutMs,
    requestTimeout: limits.uploadTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    // `limitRequestTime` checks the header Host, because Node's response to a request without it has no body.
    requireHostHeader: false,
    shouldUpgradeCallback: (request) => opensWebsocket(request) && server.listenerCount("upgrade") > 0,
  });
  server.maxConnections = limits.connectionsMax;
  const silentConnectionLimiter = new SilentConnectionLimiter(limits.silentConnectionsPerAddress);
  handleRequestsOneByOne(server, limitRequestTime(entryPoint, limits.requestTimeoutMs));
  return (
    server
      .on("connection", (socket: Socket) => silentConnectionLimiter.add(socket))
      // Without this listener, Node rejects each value of `Expect` except 100-continue, with a response that has no body.
      .on("checkExpectation", (request, response) => server.emit("request", request, response))
      .on("clientError", entryPoint.rejectInvalidRequest)
  );
}
