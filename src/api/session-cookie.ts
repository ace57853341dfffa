/**
 * Builds the cookie header with a browser's credential (contract, section 2): the session of a sign-in, or a token that a person pasted.
 */
import { stringifySetCookie } from "cookie";
import { SESSION_COOKIE_NAME } from "./caller.js";
import { getPathPrefix } from "./page-origin.js";

export interface SessionCookieHeaders {
  /** @param maxAge lifetime in seconds; if null, the browser deletes the cookie when it closes */
  createCookieHeader(value: string, maxAge: number | null): string;
  createClearingHeader(): string;
}

export function createSessionCookieHeaders(baseUrl: string): SessionCookieHeaders {
  const secure = baseUrl.startsWith("https:");
  const path = getPathPrefix(baseUrl) || "/";
  const set = (value: string, maxAge: number | null): string => {
    const age = maxAge === null ? {} : { maxAge };
    return stringifySetCookie({
      name: SESSION_COOKIE_NAME,
      value,
      path,
      ...age,
      httpOnly: true,
      sameSite: "lax",
      secure,
    });
  };
  return { createCookieHeader: set, createClearingHeader: () => set("", 0) };
}
