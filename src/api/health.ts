/** The two health addresses, answered before anything else is up (contract, section 1). Knows parts by name only. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

/** A part of the service and whether it is up. */
export type Parts = Record<string, () => boolean>;

function reply(response: ServerResponse, http: number, body: object): void {
  response
    .writeHead(http, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify(body));
}

const NOT_YET = { status: "OVERLOADED", error: "the service is starting or stopping, try again shortly" };

/** Answers the health addresses itself and hands everything else to `next`, or refuses it while there is none. */
export function createFrontDoor(parts: () => Parts, next: () => RequestListener | null): RequestListener {
  return (request: IncomingMessage, response: ServerResponse) => {
    const [path] = (request.url ?? "").split("?");
    if (path === "/health/live") return reply(response, 200, { status: "LIVE" });
    if (path === "/health/ready") {
      const failing = Object.entries(parts())
        .filter(([, up]) => !up())
        .map(([name]) => name);
      if (failing.length === 0) return reply(response, 200, { status: "READY" });
      const error = `not up: ${failing.join(", ")}`;
      return reply(response, 503, { status: "OVERLOADED", error, failing });
    }
    const listener = next();
    if (listener) return listener(request, response);
    response.setHeader("Retry-After", "1");
    return reply(response, 503, NOT_YET);
  };
}
