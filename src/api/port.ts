/** The HTTP server at the service's port. Limits how long a request may take to arrive, and how many connections may send nothing. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import type { HttpEntryPoint } from "./health.js";
import { handleRequestsOneByOne } from "./pipelining.js";

export interface HttpServerLimits {
  /**
   * Maximum time in milliseconds to receive the head of a request (headTimeoutMs), the whole request (requestTimeoutMs), or an upload
   * form (formTimeoutMs).
   */
  headTimeoutMs: number;
  requestTimeoutMs: number;
  formTimeoutMs: number;
  /** Interval in milliseconds at which the server looks for requests that take longer than one of the three limits above. */
  checkIntervalMs: number;
  /** Maximum number of open connections. */
  connectionsMax: number;
  /** Maximum number of connections from one address that have sent nothing yet. */
  silentConnectionsPerAddress: number;
}

/**
 * Default limits. A connection of 140 kilobits a second can transfer a megabyte within `requestTimeoutMs`. A browser opens six connections,
 * and a busy proxy several hundred. `connectionsMax` leaves file descriptors for the database.
 */
const DEFAULT_LIMITS: HttpServerLimits = {
  headTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  formTimeoutMs: 900_000,
  checkIntervalMs: 2_000,
  connectionsMax: 30_000,
  silentConnectionsPerAddress: 512,
};

/** Tracks the connections that have sent nothing yet, by address and from the oldest to the newest. */
class SilentConnectionLimiter {
  private readonly byAddress = new Map<string, Set<Socket>>();

  constructor(private readonly max: number) {}

  private removeSocket(socket: Socket, address: string): void {
    const silentSockets = this.byAddress.get(address);
    silentSockets?.delete(socket);
    if (silentSockets?.size === 0) this.byAddress.delete(address);
  }

  enter(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const silentSockets = this.byAddress.get(address) ?? new Set();
    this.byAddress.set(address, silentSockets.add(socket));
    socket.once("close", () => this.removeSocket(socket, address));
    // Above the limit, closes the oldest connection that has sent nothing. A real client would have sent a request by
    // now.
    const [oldest] = silentSockets;
    if (silentSockets.size <= this.max || !oldest) return;
    this.removeSocket(oldest, address);
    if (oldest.bytesRead === 0) oldest.destroy();
  }
}

/**
 * True for a request that may take longer to arrive: a form with files, an import of a file, or a commit of many
 * entries.
 */
const isFormRequest = ({ headers, url = "" }: IncomingMessage): boolean =>
  (headers["content-type"]?.toLowerCase().startsWith("multipart/form-data") ?? false) ||
  /^\/v1\/apps\/\d+\/data-sources\/[^/?]+\/(?:import|commit)(?:\?|$)/.test(url);

/**
 * Ends requests that take too long to arrive. Node has one time limit for all requests, which the server sets to the
 * long limit of upload forms. This function applies the shorter limit to all other requests.
 */
function limitRequestTime(
  { handleRequest, rejectInvalidRequest }: Pick<HttpEntryPoint, "handleRequest" | "rejectInvalidRequest">,
  limitMs: number,
): RequestListener {
  const lateError = Object.assign(new Error("the service did not receive the whole request in time"), {
    code: "ERR_HTTP_REQUEST_TIMEOUT",
  });
  return (request, response) => {
    const { headers } = request;
    const hasBody = headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
    if (hasBody && !isFormRequest(request)) {
      const timer = setTimeout(() => {
        if (request.complete) return;
        if (response.headersSent) request.socket.destroy();
        else rejectInvalidRequest(lateError, request.socket);
        request.socket.destroySoon();
      }, limitMs);
      request.once("close", () => clearTimeout(timer)).once("end", () => clearTimeout(timer));
    }
    handleRequest(request, response);
  };
}

export function createHttpServer(
  frontDoor: Pick<HttpEntryPoint, "handleRequest" | "rejectInvalidRequest">,
  limits: HttpServerLimits = DEFAULT_LIMITS,
): Server {
  const server = createServer({
    headersTimeout: limits.headTimeoutMs,
    requestTimeout: limits.formTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
  });
  server.maxConnections = limits.connectionsMax;
  const silentConnections = new SilentConnectionLimiter(limits.silentConnectionsPerAddress);
  handleRequestsOneByOne(server, limitRequestTime(frontDoor, limits.requestTimeoutMs));
  return server
    .on("connection", (socket: Socket) => silentConnections.enter(socket))
    .on("clientError", frontDoor.rejectInvalidRequest);
}
