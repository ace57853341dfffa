/**
 * Handles requests before they reach the API: the two health routes (contract, section 1) and the metrics. Rejects
 * requests while the API is not ready, and counts requests in progress.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Status } from "../errors.js";
import { RUN_TOKEN_PREFIX } from "../operations/access/tokens.js";

/**
 * Functions that check the readiness of the service, by the name of the checked component. Each returns true if the
 * component works, otherwise false or the reason.
 */
export type ReadinessChecks = Record<string, () => boolean | string>;

export interface Metrics {
  contentType: string;
  readMetrics: () => Promise<string>;
}

export interface HttpEntryPoint {
  handleRequest: RequestListener;
  /** Handles the server's event `clientError`: responds to bytes that are not valid HTTP or exceed Node's limits, and closes the socket. */
  rejectInvalidRequest(error: NodeJS.ErrnoException, socket: Socket): void;
  /** Passes all later requests to `api`; with null, later requests are no longer passed on. */
  forwardRequestsTo(api: RequestListener | null): void;
  /** From now on, passes a request to the API only if a run may have sent the request. Runs can finish while the service stops. */
  startDraining(): void;
  /** Serves `/metrics` from now on; null stops it. Every process can do this, whatever its ROLES. */
  publishMetrics(metrics: Metrics | null): void;
  /** Resolves when the API has answered every request that it received. */
  waitUntilIdle(): Promise<void>;
}

function replyWithJson(response: ServerResponse, http: number, body: object): void {
  if (http === 503) response.setHeader("Retry-After", "1");
  response
    .writeHead(http, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify(body));
}

const NOT_READY_ERROR = {
  status: "OVERLOADED",
  error: "the service is starting or stopping; try again shortly",
} as const;

const NO_API_ERROR = {
  status: "NOT_FOUND",
  error: "this process serves only health and metrics, because its ROLES do not include api",
} as const;

function sendReadinessResponse(checks: ReadinessChecks, response: ServerResponse): void {
  const states = Object.entries(checks).map(([name, checkReadiness]) => ({ name, state: checkReadiness() }));
  const failedChecks = states.filter(({ state }) => state !== true);
  if (failedChecks.length === 0) {
    replyWithJson(response, 200, { status: "READY" });
    return;
  }
  const failing = failedChecks.map(({ name }) => name);
  const descriptions = failedChecks.map(({ name, state }) => (state === false ? name : `${name} (${state})`));
  replyWithJson(response, 503, { status: "OVERLOADED", error: `not up: ${descriptions.join(", ")}`, failing });
}

/** Code of the error for a request of HTTP/1.1 without the header Host, which HTTP requires. */
export const NO_HOST_CODE = "NO_HOST";

/** HTTP status and message by Node's error code or NO_HOST_CODE, for requests that are not valid HTTP. */
const UNREADABLE_REQUEST_RESPONSES: Record<string, readonly [line: string, error: string]> = {
  HPE_HEADER_OVERFLOW: ["400 Bad Request", "the headers are larger than 16 KB"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the service did not receive the whole request in time"],
  [NO_HOST_CODE]: ["400 Bad Request", "the request must have the header Host (got nothing)"],
};

function createUnreadableResponse({ code = "" }: NodeJS.ErrnoException): string {
  const [line, error] = UNREADABLE_REQUEST_RESPONSES[code] ?? ["400 Bad Request", "the request is not valid HTTP"];
  const body = JSON.stringify({ status: "REQUEST_INVALID" satisfies Status, error });
  const contentLengthHeader = `Content-Length: ${body.length}`;
  const headers = [
    "Connection: close",
    "Content-Type: application/json",
    "X-Content-Type-Options: nosniff",
    contentLengthHeader,
  ];
  return [`HTTP/1.1 ${line}`, ...headers, "", body].join("\r\n");
}

/**
 * True if a run may have sent the request, because the request has a run's token. Also true for CORS preflights, which never have a token.
 */
function isPossiblyFromRun({ method, headers }: IncomingMessage): boolean {
  const token = headers["auth-token"] ?? headers.authorization?.replace(/^bearer /i, "");
  return method === "OPTIONS" || String(token).startsWith(RUN_TOKEN_PREFIX);
}

export function createHttpEntryPoint(checks: ReadinessChecks): HttpEntryPoint {
  let api: RequestListener | null = null;
  let isDraining = false;
  let metrics: Metrics | null = null;
  let activeRequests = 0;
  let idleCallbacks: (() => void)[] = [];

  function endRequest(): void {
    activeRequests -= 1;
    if (activeRequests > 0) return;
    for (const resolve of idleCallbacks) resolve();
    idleCallbacks = [];
  }

  function sendMetrics({ contentType, readMetrics }: Metrics, response: ServerResponse): void {
    readMetrics().then(
      (text) => response.writeHead(200, { "content-type": contentType, "cache-control": "no-store" }).end(text),
      () => replyWithJson(response, 503, { status: "OVERLOADED", error: "not up: database" }),
    );
  }

  return {
    handleRequest(request: IncomingMessage, response: ServerResponse) {
      // With this header, a browser does not interpret JSON as a page or a script.
      response.setHeader("X-Content-Type-Options", "nosniff");
      const [path] = (request.url ?? "").split("?");
      if (path === "/health/live") return replyWithJson(response, 200, { status: "LIVE" });
      if (path === "/health/ready") return sendReadinessResponse(checks, response);
      if (path === "/metrics" && metrics) return sendMetrics(metrics, response);
      if (api && (!isDraining || isPossiblyFromRun(request))) {
        activeRequests += 1;
        response.once("close", endRequest);
        return api(request, response);
      }
      if (!("api" in checks)) return replyWithJson(response, 404, NO_API_ERROR);
      response.setHeader("Connection", "close");
      replyWithJson(response, 503, NOT_READY_ERROR);
    },

    rejectInvalidRequest(error, socket) {
      if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
      else socket.end(createUnreadableResponse(error));
    },

    forwardRequestsTo(next) {
      api = next;
    },

    startDraining() {
      isDraining = true;
    },

    publishMetrics(next) {
      metrics = next;
    },

    waitUntilIdle: () =>
      activeRequests === 0 ? Promise.resolve() : new Promise((resolve) => idleCallbacks.push(resolve)),
  };
}
