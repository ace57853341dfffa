/** From the credential on a request to the caller: finds the token where the contract says it travels (section 2). */
import type { IncomingHttpHeaders } from "node:http";
import { parseCookie } from "cookie";
import { ActionError } from "../errors.js";

export const COOKIE = "auth_token";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Whether a page of another origin sent it, as the browser says: of another site, of the same site, or of no origin at all, as a
 * sandboxed document is. Browsers name where a request comes from on trustworthy addresses; elsewhere its `Origin` tells.
 */
export function isForeign({ origin, host, "sec-fetch-site": site }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  return origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`;
}

/** A person following a link from elsewhere. */
const isNavigation = (method: string, headers: IncomingHttpHeaders): boolean =>
  SAFE_METHODS.includes(method) && headers["sec-fetch-mode"] === "navigate";

/*
 * A cookie comes along with whatever a page elsewhere makes a browser send. SameSite=Lax keeps most of that out; what is left counts
 * for nothing, and a foreign origin's writes are refused in words.
 */
function cookieToken(method: string, headers: IncomingHttpHeaders): string | null {
  const token = headers.cookie ? parseCookie(headers.cookie)[COOKIE] : undefined;
  if (!token) return null;
  if (!isForeign(headers) || isNavigation(method, headers)) return token;
  if (SAFE_METHODS.includes(method)) return null;
  throw new ActionError("FORBIDDEN", "a cookie is no credential for a request from another origin");
}

/** The token in `Auth-token` or else `Authorization`, null when there is none. */
export function headerToken(headers: IncomingHttpHeaders): string | null {
  const own = headers["auth-token"];
  if (typeof own === "string" && own !== "") return own;
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? null;
}

/** The token in the headers, else in the cookie; null when there is none. */
export function tokenIn(method: string, headers: IncomingHttpHeaders): string | null {
  return headerToken(headers) ?? cookieToken(method, headers);
}
