/** What the exits share of one request: who calls, with which idempotency key, and the quota for its headers. */

import { ActionError } from "../errors.js";
import type { Visitor } from "../operations/access/gate.js";
import type { SignInRequest } from "../operations/accounts/accounts.js";
import type { Span } from "../operations/watch/tracing.js";
import type { Answer } from "./answers.js";

declare module "fastify" {
  interface FastifyRequest {
    context: RequestContext;
  }
}

export interface RequestContext extends Visitor {
  idempotencyKey: string | null;
  /** `Idempotency-Retry: failed`: a run of that key that failed or was cancelled is run again. */
  retryFailed?: boolean;
  /** What this request may still make; a subscription's events have none. */
  answer?: Answer;
  /** Aborts when the caller has disconnected. */
  gone?: () => AbortSignal;
  /** The state that the answer shows, for its `ETag`, if the answer itself does not name it. */
  updatedAt?: string;
  /** HTTP status of a REST answer that is not the usual one of its route. */
  http?: number;
  /** Where requests are traced. */
  span?: Span;
  /** The browser that sent the request over HTTP: a sign-in reads its name and sets its cookie. Absent on sockets. */
  browser?: {
    userAgent?: string;
    /** Origin of the service as the browser sees it: of PUBLIC_URL, else of the address at which the service was asked. */
    origin: string;
    /** `Origin` of the page that sent it. */
    pageOrigin?: string;
    /** The token by which the caller was found. */
    token?: string;
    /** Sets the session cookie; null clears it. */
    setSession(session: { token: string } | null): void;
  };
  /** It is refused, whatever HTTP says. */
  refused?: true;
  /** A refusal of it is sent without delay: nothing can be found out by guesses. */
  isAnswered?: true;
}

/** The request as a sign-in reads it. */
export const signInRequest = ({ caller, address, browser }: RequestContext): SignInRequest => ({
  caller,
  address,
  userAgent: browser?.userAgent,
});

/** Whether the key is free again where its run failed. @throws REQUEST_INVALID */
export function readIdempotencyRetry(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  if (header === "failed") return true;
  throw new ActionError("REQUEST_INVALID", "Idempotency-Retry must be failed, or not be there");
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
    // Over GraphQL too, where a refusal is no HTTP status.
    ...(!accepted && { "Retry-After": String(seconds) }),
  };
}
