/** Context of one request, shared by REST, GraphQL and sockets: the caller, the idempotency key, and the quota for its headers. */

import { ActionError } from "../errors.js";
import type { Visitor } from "../operations/access/gate.js";
import type { SignInRequest } from "../operations/accounts/accounts.js";
import type { TraceSpan } from "../operations/watch/tracing.js";
import type { AnswerBudget } from "./answers.js";

declare module "fastify" {
  interface FastifyRequest {
    context: RequestContext;
  }
}

export interface RequestContext extends Visitor {
  idempotencyKey: string | null;
  /** True for `Idempotency-Retry: failed`: a failed or cancelled run of this key is run again. */
  retryFailed?: boolean;
  /** Counts the bytes of the response. Absent for events of a subscription, which are counted elsewhere. */
  answer?: AnswerBudget;
  /** Returns a signal that aborts when the caller has disconnected. */
  gone?: () => AbortSignal;
  /**
   * Time of the returned resource's last change, for the `ETag` header, if the response body does not contain this
   * time.
   */
  updatedAt?: string;
  /** HTTP status of a REST response, if it differs from the usual one of its route. */
  http?: number;
  /** Trace span of the request; absent if tracing is off. */
  span?: TraceSpan;
  /** Browser that sent the request over HTTP: a sign-in reads its name and sets its cookie. Absent on sockets. */
  browser?: {
    userAgent?: string;
    /** Origin of the service as the browser sees it: from PUBLIC_URL if set, otherwise from the requested address. */
    origin: string;
    /** `Origin` of the page that sent the request. */
    pageOrigin?: string;
    /** The token that identified the caller. */
    token?: string;
    /** Sets the session cookie; null clears it. */
    setSession(session: { token: string } | null): void;
  };
  /** True if the request was rejected, even if its HTTP status is 200. */
  refused?: true;
  /** True if a rejection may be sent without delay, because its sender cannot learn anything by guessing. */
  isAnswered?: true;
}

/** Returns the data of the request that a sign-in needs. */
export const signInRequest = ({ caller, address, browser }: RequestContext): SignInRequest => ({
  caller,
  address,
  userAgent: browser?.userAgent,
});

/** True if the key can be used again after its run failed. @throws REQUEST_INVALID */
export function readIdempotencyRetry(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  if (header === "failed") return true;
  throw new ActionError("REQUEST_INVALID", 'Idempotency-Retry must be "failed" or absent');
}

/** Reads the idempotency key, 1 to 255 printable ASCII characters. @throws ActionError REQUEST_INVALID */
export function readIdempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header === "string" && /^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw new ActionError(
    "REQUEST_INVALID",
    "Idempotency-Key must be 1 to 255 printable ASCII characters without spaces",
  );
}

/** The remaining quota of a limited operation as headers (RateLimit fields of the IETF draft; times in seconds). */
export function quotaHeaders({ quota }: Visitor): Record<string, string> {
  if (!quota) return {};
  const { accepted, limit, remaining, freesAt } = quota;
  const seconds = Math.max(accepted ? 0 : 1, Math.ceil((freesAt.getTime() - Date.now()) / 1000));
  return {
    "RateLimit-Limit": String(limit),
    "RateLimit-Remaining": String(remaining),
    "RateLimit-Reset": String(seconds),
    // The headers also help GraphQL clients: there a refusal has no HTTP status of its own.
    ...(!accepted && { "Retry-After": String(seconds) }),
  };
}
