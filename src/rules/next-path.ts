/** Validates the path to which a browser returns after a sign-in elsewhere. Rejects paths that lead to other sites (open redirects). */

const BASE_URL = "http://service.invalid";
const PATH_MAX_CHARACTERS = 2_000;

/** Returns a path of this service with its query and fragment; `otherwise` for any other text. */
export function safeNextPath(value: unknown, otherwise: string): string {
  if (typeof value !== "string" || value.length > PATH_MAX_CHARACTERS) return otherwise;
  // Browsers read a backslash as a slash, and skip tabs and line breaks: `/\evil.example` and `/<tab>/evil.example` name a host.
  if (!/^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/.test(value)) return otherwise;
  const url = URL.parse(value, BASE_URL);
  // `/x/..//evil.example` becomes a path that begins with two slashes.
  if (url === null || url.origin !== BASE_URL || url.pathname.startsWith("//")) return otherwise;
  return url.pathname + url.search + url.hash;
}
