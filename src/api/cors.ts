/**
 * Sets the CORS headers: pages of any origin can use the API with a token in a header, but not with the service's
 * cookie.
 */
import cors, { type FastifyCorsOptions } from "@fastify/cors";
import type { FastifyInstance } from "fastify";

const DAY_SECONDS = 86_400;

const ALLOWED_HEADERS = [
  ...["Auth-token", "Authorization", "Content-Type", "Idempotency-Key", "Idempotency-Retry", "If-Match"],
  "traceparent",
  "Mcp-Protocol-Version",
  ...["Range", "If-Range", "If-None-Match"],
];
const EXPOSED_HEADERS = [
  "WWW-Authenticate",
  ...["ETag", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
  ...["Content-Range", "Accept-Ranges", "Content-Disposition"],
];

/**
 * Allows requests from all origins without cookies. Browsers send no cookie to another origin here, so a page can do only what its token
 * allows. Pages that execute server runs have another origin too.
 */
export function registerCors(app: FastifyInstance): void {
  const options: FastifyCorsOptions = {
    origin: "*",
    credentials: false,
    // An OPTIONS request that is no preflight is not an error.
    strictPreflight: false,
    methods: ["GET", "POST", "PUT", "DELETE"],
    allowedHeaders: ALLOWED_HEADERS.join(", "),
    exposedHeaders: EXPOSED_HEADERS.join(", "),
    maxAge: DAY_SECONDS,
  };
  app.register(cors, {
    // HTTP triggers have their own lists of origins (http-triggers.ts).
    delegator: (request, callback) =>
      callback(null, request.routeOptions.config.ownCredentials ? { origin: false } : options),
  });
}
