/**
 * Reads the credential of a request (contract, section 2). Rejects requests that a page of another site makes a browser send (contract,
 * section 7). Read this file before you accept a cookie anywhere.
 */
import type { IncomingHttpHeaders } from "node:http";
import { parseCookie } from "cookie";
import { ActionError } from "../errors.js";

export const COOKIE_NAME = "auth_token";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/** Route that signs in with a pasted token (POST) and signs out (DELETE). */
const TOKEN_SIGN_IN = "/v1/session";

/** Part of a request that the check reads. `route` is the pattern that matched, because a path has several spellings. */
export interface RequestHead {
  method: string;
  route: string;
  headers: IncomingHttpHeaders;
}

/** Source of a request: a page of this service, another page, or unknown, as for programs and for old browsers. */
export type Source = "own" | "foreign" | "unknown";

export interface CallerReader {
  /** Returns the source by `Origin` if the header is present, otherwise by `Sec-Fetch-Site`. */
  sourceOf(headers: IncomingHttpHeaders): Source;
  /** Checks that a page of the service sent the request, and returns the service's origin. */
  ownOrigin(headers: IncomingHttpHeaders): string;
  /**
   * Returns the token of a request, or null. `Auth-token` has precedence over `Authorization`, and `Authorization` over the cookie. A
   * cookie is ignored for reads by pages of other sites.
   * @throws ActionError CROSS_SITE_REQUEST for a change with the cookie, and for every sign-in, that no page of this service sent
   */
  tokenOf(request: RequestHead): string | null;
}

/** Returns the token in `Auth-token`, otherwise the one in `Authorization`, otherwise null. */
export function headerToken(headers: IncomingHttpHeaders): string | null {
  const tokenHeader = headers["auth-token"];
  if (typeof tokenHeader === "string" && tokenHeader !== "") return tokenHeader;
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? null;
}

/** Returns the token in the cookie. Check where the request comes from before you accept it. */
export const cookieToken = ({ cookie }: IncomingHttpHeaders): string | null =>
  (cookie ? parseCookie(cookie)[COOKIE_NAME] : undefined) || null;

/** True if a person opened this address by a link on another site. */
const isNavigation = ({ method, headers }: RequestHead): boolean =>
  SAFE_METHODS.includes(method) && headers["sec-fetch-mode"] === "navigate";

/** @param publicUrl PUBLIC_URL. If null, the host in the request's `Host` header is the service's own. */
export function createCallerReader(publicUrl: string | null): CallerReader {
  const publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;

  function sourceOf({ origin, host, "sec-fetch-site": site }: IncomingHttpHeaders): Source {
    if (origin !== undefined) {
      const isOwnOrigin =
        publicOrigin === null ? origin === `http://${host}` || origin === `https://${host}` : origin === publicOrigin;
      return isOwnOrigin ? "own" : "foreign";
    }
    if (site === undefined) return "unknown";
    // "none" means that a person opened the address, or that a browser extension sent the request.
    return site === "same-origin" || site === "none" ? "own" : "foreign";
  }

  function checkSource({ headers }: RequestHead): void {
    const source = sourceOf(headers);
    const isRejected = source === "foreign" || (source === "unknown" && cookieToken(headers) !== null);
    if (isRejected) throw new ActionError("CROSS_SITE_REQUEST");
  }

  return {
    sourceOf,

    ownOrigin(headers) {
      if (publicOrigin !== null) return publicOrigin;
      return headers.origin !== undefined && sourceOf(headers) === "own" ? headers.origin : `http://${headers.host}`;
    },

    tokenOf(request) {
      const { method, route, headers } = request;
      const isChange = !SAFE_METHODS.includes(method);
      const isSignIn = (method === "POST" && route.startsWith("/v1/auth/")) || (isChange && route === TOKEN_SIGN_IN);
      if (isSignIn) checkSource(request);
      const token = headerToken(headers);
      if (token !== null) return token;
      const cookie = cookieToken(headers);
      if (cookie === null) return null;
      if (isChange) checkSource(request);
      const isIgnored = sourceOf(headers) === "foreign" && !isNavigation(request);
      return isIgnored ? null : cookie;
    },
  };
}
