/** Validates the origins of an app's external pages (pages on other servers), and converts them to the form in which they are compared. */

import { EXTERNAL_PAGE_ORIGINS_PER_APP_MAX } from "../limits.js";
import { refuseField } from "./fields.js";
import { normalizeOrigin } from "./integration-origins.js";

const ORIGIN_MAX_CHARACTERS = 300;
const LOOPBACK_HOST_PATTERN = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Returns the origin as browsers send it in the header `Origin`; null if the value is no valid origin. */
function readOrigin(value: unknown, allowHttp: boolean): string | null {
  if (typeof value !== "string" || value.length > ORIGIN_MAX_CHARACTERS || /[\s\\@?#*]/.test(value)) return null;
  const url = /^https?:\/\/[^/]+\/?$/i.test(value) ? URL.parse(value) : null;
  const origin = url && normalizeOrigin(url);
  if (!url || !origin) return null;
  // Without `allowHttp`, http is valid only for the developer's own machine. On a network, others can change a page that is sent over http.
  return url.protocol === "https:" || allowHttp || LOOPBACK_HOST_PATTERN.test(url.hostname) ? origin : null;
}

/**
 * Validates a list of origins. Returns their normalized forms without duplicates.
 * @param allowHttp true if http is valid for any host (ALLOW_PRIVATE_NETWORK)
 * @throws REQUEST_INVALID
 */
export function parseExternalPageOrigins(value: unknown, allowHttp: boolean): string[] {
  if (!Array.isArray(value) || value.length > EXTERNAL_PAGE_ORIGINS_PER_APP_MAX) {
    const expected = `an array of at most ${EXTERNAL_PAGE_ORIGINS_PER_APP_MAX} origins`;
    refuseField("origins", expected, value);
  }
  const origins = value.map((element, index) => {
    const origin = readOrigin(element, allowHttp);
    if (origin !== null) return origin;
    const httpHosts = allowHttp ? "" : " of localhost";
    const expected = `an https origin such as "https://shop.example", or an http origin${httpHosts}, without a path`;
    return refuseField(`origins[${index}]`, expected, element);
  });
  return [...new Set(origins)];
}
