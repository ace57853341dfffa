/** Validates the path to which a browser returns after a sign-in. Rejects paths that lead to other sites (open redirects). */

const BASE_URL = "http://service.invalid";
const PATH_MAX_CHARACTERS = 2_000;

/** Returns the value if it is a path on this service; if not, returns `otherwise`. */
export function toSafeReturnPath(value: unknown, otherwise: string): string {
  if (typeof value !== "string" || value.length > PATH_MAX_CHARACTERS) return otherwise;
  // Browsers read a backslash as a slash, and skip tabs. So `/\evil.example` and `/<tab>/evil.example` would lead to another host.
  if (!/^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/.test(value)) return otherwise;
  const url = URL.parse(value, BASE_URL);
  // The URL parser turns `/x/..//evil.example` into `//evil.example`, which browsers take for a URL of another host.
  if (url === null || url.origin !== BASE_URL || url.pathname.startsWith("//")) return otherwise;
  return url.pathname + url.search + url.hash;
}
