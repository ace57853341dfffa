/**
 * Checks which origins may open a websocket (contract, section 7). Only pages of the service's own origin can use the cookie.
 *
 * Allowed without a cookie:
 * - programs (no origin)
 * - pages of apps (opaque origin or RUNTIME_URL)
 * - origins in an app's list
 * - documents of server runs
 */
import type { IncomingHttpHeaders } from "node:http";
import { ActionError } from "../errors.js";
import { type CallerReader, readTokenCookie, readTokenHeader } from "./caller.js";

/** Matches the origin of a document in which a server run executes. No page of the internet can have this host name. */
const RUN_ORIGIN_PATTERN = /^https:\/\/app-\d+\.actions\.internal$/;
/** `Origin` header of a sandboxed document. */
const OPAQUE_ORIGIN = "null";

/**
 * Returns the token of an upgrade request; null if there is none.
 * @throws ActionError CROSS_SITE_REQUEST if the page may not open a websocket
 */
export type ReadWebsocketUpgradeToken = (headers: IncomingHttpHeaders) => Promise<string | null>;

export function createWebsocketUpgradeTokenReader(options: {
  callers: CallerReader;
  /** The setting RUNTIME_URL: origin of pages that run authors' code. If null, these pages have the service's own origin. */
  runtimeUrl: string | null;
  /** True if the list of some app contains the origin. */
  isListedOrigin: (origin: string) => Promise<boolean>;
}): ReadWebsocketUpgradeToken {
  const { callers, runtimeUrl, isListedOrigin } = options;
  const runtimeOrigin = runtimeUrl === null ? null : new URL(runtimeUrl).origin;

  async function isAllowed(origin: string): Promise<boolean> {
    return (
      origin === OPAQUE_ORIGIN || origin === runtimeOrigin || RUN_ORIGIN_PATTERN.test(origin) || isListedOrigin(origin)
    );
  }

  return async (headers) => {
    const { origin } = headers;
    const source = callers.detectRequestSource(headers);
    const isOwnOrigin = source === "own" || source === "unknown";
    if (!isOwnOrigin && (origin === undefined || !(await isAllowed(origin))))
      throw new ActionError("CROSS_SITE_REQUEST");
    const token = readTokenHeader(headers);
    if (token !== null) return token;
    const cookie = readTokenCookie(headers);
    if (cookie !== null && source !== "own") throw new ActionError("CROSS_SITE_REQUEST");
    return cookie;
  };
}
