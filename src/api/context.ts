/**
 * Context of one request, shared by REST, GraphQL and sockets: the caller, the idempotency key, and the caller's remaining quota for the
 * response headers.
 */

import { ActionError } from "../errors.js";
import type { AccessCheckInput } from "../operations/access/access-checks.js";
import type { SignInRequest } from "../operations/accounts/accounts.js";
import type { TraceSpan } from "../operations/watch/tracing.js";
import { describeValue } from "../rules/describe-value.js";
import type { ResponseBudget } from "./response-memory.js";

declare module "fastify" {
  interface FastifyRequest {
    context: RequestContext;
  }
}

export interface RequestContext extends AccessCheckInput {
  idempotencyKey: string | null;
  /**
   * True if the header is `Idempotency-Retry: failed`. If the run of the idempotency key has failed or was cancelled,
   * the service then starts a new run.
   */
  shouldRetryFailed?: boolean;
  /** Memory budget of the response. Absent for events of a subscription, whose bytes api/live counts. */
  responseBudget?: ResponseBudget;
  /** Returns a signal that aborts when the caller has disconnected. */
  getClosedSignal?: () => AbortSignal;
  /** Time of the last change of the returned resource, for the `ETag` header. Set only if the response body does not contain it. */
  updatedAt?: string;
  /** HTTP status of a REST response, if it differs from the usual status of the route. */
  httpStatus?: number;
  /** Trace span of the request; absent if tracing is off. */
  span?: TraceSpan;
  /** Browser that sent the request over HTTP. A sign-in stores the browser's name and sets its session cookie. Absent for websockets. */
  browser?: {
    userAgent?: string;
    /** Origin of the service in the browser: the origin of PUBLIC_URL if set, otherwise of the requested URL. */
    origin: string;
    /** Value of the `Origin` header: origin of the page that sent the request. */
    pageOrigin?: string;
    /** Token with which the service identified the caller. */
    token?: string;
    /** Sets the session cookie; null clears it. */
    setSession(session: { token: string } | null): void;
  };
  /** True if the service rejected the request, even if the HTTP status is 200 as in GraphQL. */
  isRejected?: true;
  /** True if the service may send a rejection without delay, because the rejection contains no hint about a password or token. */
  mayRejectWithoutDelay?: true;
}

export const toSignInRequest = ({ caller, address, browser }: RequestContext): SignInRequest => ({
  caller,
  address,
  userAgent: browser?.userAgent,
});

/**
 * Reads the header `Idempotency-Retry`. Returns true if the caller wants a new run in place of a failed or cancelled run with the same
 * idempotency key.
 * @throws REQUEST_INVALID for an unknown value
 */
export function readIdempotencyRetryHeader(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  if (header === "failed") return true;
  throw new ActionError(
    "REQUEST_INVALID",
    `the header Idempotency-Retry must be "failed" or absent (got ${describeValue(header)})`,
  );
}

/**
 * Reads an idempotency key: 1 to 255 printable ASCII characters. Returns null if it is absent.
 * @param source name of the header or argument that contains the key, for the error message
 * @throws ActionError REQUEST_INVALID
 */
export function parseIdempotencyKey(key: string | string[] | undefined, source: string): string | null {
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new ActionError(
    "REQUEST_INVALID",
    `${source} must be 1 to 255 printable ASCII characters without spaces (got ${describeValue(key)})`,
  );
}

/** Returns the caller's remaining quota for a rate-limited operation as `RateLimit` headers of the IETF draft, with times in seconds. */
export function createQuotaHeaders({ quota }: AccessCheckInput): Record<string, string> {
  if (!quota) return {};
  const { accepted, limit, remaining, nextAcceptedAt } = quota;
  const resetSeconds = Math.max(accepted ? 0 : 1, Math.ceil((nextAcceptedAt.getTime() - Date.now()) / 1000));
  return {
    "RateLimit-Limit": String(limit),
    "RateLimit-Remaining": String(remaining),
    "RateLimit-Reset": String(resetSeconds),
    // A rejection over GraphQL has HTTP status 200, and other code sets this header only for responses with an error status.
    ...(!accepted && { "Retry-After": String(resetSeconds) }),
  };
}
