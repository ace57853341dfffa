/**
 * Reads the credential of a request (contract, section 2). Does not accept the service's cookie if a page of another origin made the
 * browser send the request (contract, section 7). The load of a page, for example after a click on a link, is an exception. Read this file
 * before you accept a cookie anywhere.
 */
import type { IncomingHttpHeaders } from "node:http";
import { parseCookie } from "cookie";
import { ActionError } from "../errors.js";

export const SESSION_COOKIE_NAME = "auth_token";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/** Route that signs in with a pasted token (POST), signs out (DELETE), and returns the state of the sign-in (GET). */
const BROWSER_SESSION_ROUTE = "/v1/session";

/** Parts of a request that the cross-site check reads. `route` is the route's pattern, such as "/v1/apps/:id". */
export interface CrossSiteCheckInput {
  method: string;
  route: string;
  headers: IncomingHttpHeaders;
}

/**
 * Source of a request: the kind of its sender.
 *
 * - "own": a page of this service, or the person at the browser.
 * - "foreign": a page of another origin.
 * - "unknown": a program or old browser, which does not name the sender.
 */
export type RequestSource = "own" | "foreign" | "unknown";

export interface CallerReader {
  /** Returns the source of a request. Reads the header `Origin` if it is present, otherwise `Sec-Fetch-Site`. */
  detectRequestSource(headers: IncomingHttpHeaders): RequestSource;
  /**
   * Returns the service's own origin: the origin of PUBLIC_URL if it is set. Otherwise, returns the `Origin` header of a request from a
   * page of the service. For other requests, joins `http://` and the `Host` header.
   */
  getOwnOrigin(headers: IncomingHttpHeaders): string;
  /**
   * Returns the token of a request, or null. Precedence: `Auth-token`, `Authorization`, cookie. Ignores the cookie if a page of another
   * origin reads data. A click on a link to a page does not count as such a read.
   * @throws ActionError CROSS_SITE_REQUEST for two kinds of requests: sign-in or sign-out, and changes with the cookie. They fail if a page
   * of another origin sent them. They also fail if they have the cookie but do not name their sender, as in old browsers
   */
  readToken(request: CrossSiteCheckInput): string | null;
}

export function readTokenHeader(headers: IncomingHttpHeaders): string | null {
  const tokenHeader = headers["auth-token"];
  if (typeof tokenHeader === "string" && tokenHeader !== "") return tokenHeader;
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? null;
}

/** Returns the token in the session cookie. Before you accept it, check that no page of another site sent the request. */
export const readTokenCookie = ({ cookie }: IncomingHttpHeaders): string | null =>
  (cookie ? parseCookie(cookie)[SESSION_COOKIE_NAME] : undefined) || null;

/** True if the browser loads the address as a page, for example after a click on a link. */
const isPageNavigation = ({ method, headers }: CrossSiteCheckInput): boolean =>
  SAFE_METHODS.includes(method) && headers["sec-fetch-mode"] === "navigate";

/** @param publicUrl the setting PUBLIC_URL. If null, the host of the service's own origin is the request's `Host` header */
export function createCallerReader(publicUrl: string | null): CallerReader {
  const publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;

  function detectSource({ origin, host, "sec-fetch-site": site }: IncomingHttpHeaders): RequestSource {
    if (origin !== undefined) {
      const isOwnOrigin =
        publicOrigin === null ? origin === `http://${host}` || origin === `https://${host}` : origin === publicOrigin;
      return isOwnOrigin ? "own" : "foreign";
    }
    if (site === undefined) return "unknown";
    // The header `Sec-Fetch-Site` is "none" if a person entered the address or a browser extension sent the request.
    return site === "same-origin" || site === "none" ? "own" : "foreign";
  }

  function rejectForeignSource({ headers }: CrossSiteCheckInput): void {
    const source = detectSource(headers);
    const isRejected = source === "foreign" || (source === "unknown" && readTokenCookie(headers) !== null);
    if (isRejected) throw new ActionError("CROSS_SITE_REQUEST");
  }

  return {
    detectRequestSource: detectSource,

    getOwnOrigin(headers) {
      if (publicOrigin !== null) return publicOrigin;
      return headers.origin !== undefined && detectSource(headers) === "own"
        ? headers.origin
        : `http://${headers.host}`;
    },

    readToken(request) {
      const { method, route, headers } = request;
      const isChange = !SAFE_METHODS.includes(method);
      const isSignIn =
        (method === "POST" && route.startsWith("/v1/auth/")) || (isChange && route === BROWSER_SESSION_ROUTE);
      if (isSignIn) rejectForeignSource(request);
      const token = readTokenHeader(headers);
      if (token !== null) return token;
      const cookie = readTokenCookie(headers);
      if (cookie === null) return null;
      if (isChange) rejectForeignSource(request);
      const isCookieIgnored = detectSource(headers) === "foreign" && !isPageNavigation(request);
      return isCookieIgnored ? null : cookie;
    },
  };
}
