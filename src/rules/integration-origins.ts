/**
 * Validates the field `integrationOrigins` of an action: the origins to which it may send requests. Converts origins to the form in which
 * they are stored and compared.
 */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { INTEGRATION_ORIGINS_PER_ACTION_MAX } from "../limits.js";
import { describeValue } from "./describe-value.js";

const ORIGIN_MAX_CHARACTERS = 300;
const HOST_MAX_CHARACTERS = 253;
/** Matches one label of a host name in ASCII form. This check is needed, because the URL parser also accepts `*` and other characters. */
const HOST_LABEL_PATTERN = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const HTTP_SCHEME_PATTERN = /^https?:\/\//i;
const LOOPBACK_NAME_PATTERN = /(?:^|\.)localhost$/;
const PRIVATE_RANGES: ReadonlySet<string> = new Set(["loopback", "private", "linkLocal", "uniqueLocal", "unspecified"]);

interface OriginRules {
  /** True if http, and hosts in private networks, are valid (ALLOW_PRIVATE_NETWORK). */
  allowPrivateNetwork: boolean;
}

function isPrivateHost(host: string): boolean {
  if (LOOPBACK_NAME_PATTERN.test(host)) return true;
  const address = host.replace(/^\[(.*)\]$/, "$1");
  return isIP(address) !== 0 && PRIVATE_RANGES.has(ipaddr.process(address).range());
}

/** Returns a URL's host name without a trailing dot; null if it is no valid host name, although the URL parser accepts it. */
export function normalizeHost(hostname: string): string | null {
  const host = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  if (host.startsWith("[")) return host;
  const isName = host.length <= HOST_MAX_CHARACTERS && host.split(".").every((label) => HOST_LABEL_PATTERN.test(label));
  return isName ? host : null;
}

/** Returns the URL's origin with the normalized host name and without a default port; null if the origin is invalid. */
export function normalizeOrigin({ protocol, hostname, port }: URL): string | null {
  const host = normalizeHost(hostname);
  if (host === null || (protocol !== "https:" && protocol !== "http:")) return null;
  return `${protocol}//${host}${port === "" ? "" : `:${port}`}`;
}

function readOrigin(value: unknown, { allowPrivateNetwork }: OriginRules): { origin: string } | { expected: string } {
  const schemesText = allowPrivateNetwork ? "an https or http origin" : "an https origin";
  const expected = `${schemesText} such as "https://api.example.com"`;
  if (typeof value !== "string" || value.length > ORIGIN_MAX_CHARACTERS || !HTTP_SCHEME_PATTERN.test(value))
    return { expected };
  // Checks these characters before the URL parser, which removes white space and treats a backslash as a slash.
  if (/[\s\\@?#]/.test(value)) return { expected: `${expected} without credentials, query and fragment` };
  const url = URL.parse(value);
  const origin = url && normalizeOrigin(url);
  if (!url || !origin || url.port === "0") return { expected };
  if (url.pathname !== "/" || value.replace(HTTP_SCHEME_PATTERN, "").replace(/\/$/, "").includes("/")) {
    return { expected: `${expected} without a path` };
  }
  if (!allowPrivateNetwork && url.protocol !== "https:") return { expected };
  if (!allowPrivateNetwork && isPrivateHost(normalizeHost(url.hostname)!)) {
    return { expected: `${expected} of a public host` };
  }
  return { origin };
}

export function findIntegrationOriginsFault(value: unknown, environment: unknown, rules: OriginRules): string | null {
  if (value === null) return null;
  if (!Array.isArray(value)) return `integrationOrigins must be an array of origins (got ${describeValue(value)})`;
  if (value.length > INTEGRATION_ORIGINS_PER_ACTION_MAX) {
    return `integrationOrigins must have at most ${INTEGRATION_ORIGINS_PER_ACTION_MAX} origins (got ${value.length})`;
  }
  for (const [index, item] of value.entries()) {
    const readResult = readOrigin(item, rules);
    if ("expected" in readResult)
      return `integrationOrigins[${index}] must be ${readResult.expected} (got ${describeValue(item)})`;
  }
  if (value.length === 0 || environment === "server") return null;
  return `integrationOrigins must be empty unless environment is "server" (got ${describeValue(environment)})`;
}

export function toStoredIntegrationOrigins(value: unknown): string[] {
  const input = Array.isArray(value) ? (value as string[]) : [];
  return [...new Set(input.map((origin) => normalizeOrigin(new URL(origin))!))];
}
