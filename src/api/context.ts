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
  /** `Idempotency-Retry: failed`: a failed or cancelled run of that key is run again. */
  retryFailed?: boolean;
  /** Account of the response's bytes; events of a subscription have none. */
  answer?: AnswerBudget;
  /** Aborts when the caller has disconnected. */
  gone?: () => AbortSignal;
  /** The state that the response shows, for its `ETag`, if the response itself does not name it. */
  updatedAt?: string;
  /** HTTP status of a REST response, if it differs from the usual one of its route. */
  http?: number;
  /** Set if requests are traced. */
  span?: TraceSpan;
  /** The browser that sent the request over HTTP: a sign-in reads its name and sets its cookie. Absent on sockets. */
  browser?: {
    userAgent?: string;
    /** Origin of the service as the browser sees it: from PUBLIC_URL, else from the requested address. */
    origin: string;
    /** `Origin` of the page that sent the request. */
    pageOrigin?: string;
    /** The token that identified the caller. */
    token?: string;
    /** Sets the session cookie; null clears it. */
    setSession(session: { token: string } | null): void;
  };
  /** The request was refused, whatever its HTTP status. */
  refused?: true;
  /** Refusals are sent without delay, because guessing would reveal nothing. */
  isAnswered?: true;
}

/** Facts of the request for a sign-in. */
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

/** 1 to 255 printable ASCII characters. @throws REQUEST_INVALID */
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
    // Also over GraphQL, where a refusal has no HTTP status of its own.
    ...(!accepted && { "Retry-After": String(seconds) }),
  };
}
