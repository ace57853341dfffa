/** From the credential on a request to the caller: finds the token where the contract says it travels (section 2). */
import type { IncomingHttpHeaders } from "node:http";
import { parseCookie } from "cookie";
import { ActionError } from "../errors.js";

export const COOKIE = "auth_token";

/** Paths within paths; a header that holds more was made up. */
const COOKIES_MAX = 4;

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/** Whether a page of another origin sent it, as the browser says. */
export function isForeign({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`;
}

/*
 * A cookie comes along with whatever a page elsewhere makes a browser send. SameSite=Lax keeps most of that out; a browser also says
 * where a request comes from, and a foreign origin's writes are refused.
 */
function refuseForeignCookie(method: string, headers: IncomingHttpHeaders): void {
  if (SAFE_METHODS.includes(method)) return;
  if (isForeign(headers)) {
    throw new ActionError("FORBIDDEN", "a cookie is no credential for a request from another origin");
  }
}

/** Every token that came as a cookie: browsers send cookies of several paths, the one of the longest first. */
export function cookieTokens({ cookie = "" }: IncomingHttpHeaders): string[] {
  const found = cookie.split(";").map((pair) => pair.trim().split("="));
  return found.flatMap(([name, value]) => (name === COOKIE && value ? [value] : [])).slice(0, COOKIES_MAX);
}

/** The token in the headers, null when there is none. `Auth-token` goes before `Authorization`, that before the cookie. */
export function tokenIn(method: string, headers: IncomingHttpHeaders): string | null {
  const own = headers["auth-token"];
  if (typeof own === "string" && own !== "") return own;
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (bearer) return bearer;
  const cookie = headers.cookie ? parseCookie(headers.cookie)[COOKIE] : undefined;
  if (!cookie) return null;
  refuseForeignCookie(method, headers);
  return cookie;
}
