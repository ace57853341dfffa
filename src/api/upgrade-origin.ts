/**
 * Checks which origins may open a websocket (contract, section 7). Only the service's own origin can use the cookie.
 * Pages of apps have no origin (sandboxed) or that of RUNTIME_URL. Pages on origins that an app lists, and server runs,
 * may also open a websocket. Programs send no origin.
 */
import type { IncomingHttpHeaders } from "node:http";
import { ActionError } from "../errors.js";
import { type CallerReader, cookieToken, headerToken } from "./caller.js";

/** Matches the origin of a document that executes a server run. No such host exists, so that no page of the internet has this origin. */
const RUN_ORIGIN = /^https:\/\/app-\d+\.actions\.internal$/;
/** Origin of a sandboxed document. */
const NO_ORIGIN = "null";

/** Returns the token of an upgrade request, or null. @throws ActionError CROSS_SITE_REQUEST */
export type ReadUpgrade = (headers: IncomingHttpHeaders) => Promise<string | null>;

export function createUpgradeReader(options: {
  callers: CallerReader;
  /** Origin of pages that run authors' code. If null, this is the service's own origin. */
  runtimeUrl: string | null;
  /** True if an app lists the origin. */
  isListed: (origin: string) => Promise<boolean>;
}): ReadUpgrade {
  const { callers, runtimeUrl, isListed } = options;
  const runtimeOrigin = runtimeUrl === null ? null : new URL(runtimeUrl).origin;

  async function isAllowed(origin: string): Promise<boolean> {
    return origin === NO_ORIGIN || origin === runtimeOrigin || RUN_ORIGIN.test(origin) || isListed(origin);
  }

  return async (headers) => {
    const { origin } = headers;
    const source = callers.sourceOf(headers);
    const isOwnOrigin = source === "own" || source === "unknown";
    if (!isOwnOrigin && (origin === undefined || !(await isAllowed(origin))))
      throw new ActionError("CROSS_SITE_REQUEST");
    const token = headerToken(headers);
    if (token !== null) return token;
    const cookie = cookieToken(headers);
    if (cookie !== null && source !== "own") throw new ActionError("CROSS_SITE_REQUEST");
    return cookie;
  };
}
