/** Which pages elsewhere may talk to the API: all, with a token in a header; none with a cookie. */
import cors, { type FastifyCorsOptions } from "@fastify/cors";
import type { FastifyInstance } from "fastify";

const DAY_SECONDS = 86_400;

const ALLOWED = [
  ...["Auth-token", "Authorization", "Content-Type", "Idempotency-Key", "Idempotency-Retry", "If-Match"],
  "traceparent",
  "Mcp-Protocol-Version",
  ...["Range", "If-Range", "If-None-Match"],
];
const EXPOSED = [
  "WWW-Authenticate",
  ...["ETag", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
  ...["Content-Range", "Accept-Ranges", "Content-Disposition"],
];

/**
 * Without `credentials` a browser sends no cookie across origins and hides the answer if it did, so that any origin may be let in: what
 * a page can do here is what the token that it was given can do. A server run's page is such an origin.
 */
export function registerCors(app: FastifyInstance): void {
  const options: FastifyCorsOptions = {
    origin: "*",
    credentials: false,
    // An OPTIONS that asks for nothing is no fault.
    strictPreflight: false,
    methods: ["GET", "POST", "PUT", "DELETE"],
    allowedHeaders: ALLOWED.join(", "),
    exposedHeaders: EXPOSED.join(", "),
    maxAge: DAY_SECONDS,
  };
  app.register(cors, {
    // HTTP triggers have lists of origins of their own (http-triggers.ts).
    delegator: (request, callback) =>
      callback(null, request.routeOptions.config.ownCredentials ? { origin: false } : options),
  });
}
