/** Sets the CORS headers: pages of any origin can use the API with a token in a header, but cannot use the service's cookie. */
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

/** Allows requests from all origins, but without cookies. So a page of another origin can do only what its token allows. */
export function registerCors(app: FastifyInstance): void {
  const options: FastifyCorsOptions = {
    origin: "*",
    credentials: false,
    // An OPTIONS request that is not a CORS preflight is not an error.
    strictPreflight: false,
    methods: ["GET", "POST", "PUT", "DELETE"],
    allowedHeaders: ALLOWED_HEADERS.join(", "),
    exposedHeaders: EXPOSED_HEADERS.join(", "),
    maxAge: DAY_SECONDS,
  };
  app.register(cors, {
    // Routes with `checksOwnCredentials` get no CORS headers here. HTTP triggers have their own lists of origins (http-triggers.ts).
    delegator: (request, callback) =>
      callback(null, request.routeOptions.config.checksOwnCredentials ? { origin: false } : options),
  });
}
