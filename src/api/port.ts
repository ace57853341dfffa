/** The HTTP server at the port: how long a request may take to arrive, and how many connections may be open that say nothing. Answers no request. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import type { FrontDoor } from "./health.js";
import { handleInTurn } from "./pipelining.js";

export interface PortLimits {
  /** For a request's head, and for all of it; a form with files has longer. */
  headMs: number;
  requestMs: number;
  formMs: number;
  /** How often the two are looked after. */
  checkMs: number;
  connections: number;
  /** Connections of one address over which nothing has come. */
  silentPerAddress: number;
}

/** A megabyte comes in a minute over any line; descriptors are also the database's; a browser opens six, a busy proxy some hundreds. */
const LIMITS: PortLimits = {
  headMs: 10_000,
  requestMs: 60_000,
  formMs: 900_000,
  checkMs: 2_000,
  connections: 30_000,
  silentPerAddress: 512,
};

/** The connections by address, oldest first, as far as they are still watched for their silence. */
function createSilence(most: number) {
  const byAddress = new Map<string, Set<Socket>>();

  function leave(socket: Socket, address: string): void {
    const silent = byAddress.get(address);
    silent?.delete(socket);
    if (silent?.size === 0) byAddress.delete(address);
  }

  return {
    enter(socket: Socket): void {
      const address = socket.remoteAddress ?? "";
      const silent = byAddress.get(address) ?? new Set();
      byAddress.set(address, silent.add(socket));
      socket.once("close", () => leave(socket, address));
      // Closes the oldest: a real client has sent its request by then, and is under the limits of requests.
      const [oldest] = silent;
      if (silent.size <= most || !oldest) return;
      leave(oldest, address);
      if (oldest.bytesRead === 0) oldest.destroy();
    },
  };
}

/** A file, in a form or by itself, or a commit of many entries. */
const isForm = ({ headers, url = "" }: IncomingMessage): boolean =>
  (headers["content-type"]?.toLowerCase().startsWith("multipart/form-data") ?? false) ||
  /^\/v1\/apps\/\d+\/data-sources\/[^/?]+\/(?:import|commit)(?:\?|$)/.test(url);

/** Node has one limit for all requests, which is that of forms: any other is refused here when its time is over. */
function timed({ handle, refuse }: Pick<FrontDoor, "handle" | "refuse">, limitMs: number): RequestListener {
  const late = Object.assign(new Error("the request did not arrive in time"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
  return (request, response) => {
    const { headers } = request;
    const hasBody = headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
    if (hasBody && !isForm(request)) {
      const timer = setTimeout(() => {
        if (request.complete) return;
        if (response.headersSent) request.socket.destroy();
        else refuse(late, request.socket);
        request.socket.destroySoon();
      }, limitMs);
      request.once("close", () => clearTimeout(timer)).once("end", () => clearTimeout(timer));
    }
    handle(request, response);
  };
}

export function createPort(door: Pick<FrontDoor, "handle" | "refuse">, limits: PortLimits = LIMITS): Server {
  const server = createServer({
    headersTimeout: limits.headMs,
    requestTimeout: limits.formMs,
    connectionsCheckingInterval: limits.checkMs,
  });
  server.maxConnections = limits.connections;
  handleInTurn(server, timed(door, limits.requestMs));
  return server.on("connection", createSilence(limits.silentPerAddress).enter).on("clientError", door.refuse);
}
