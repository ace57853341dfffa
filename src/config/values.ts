/** Parsers for the values of environment variables. Each rejects a text with the expected form, which completes "NAME must be …". */
import { isIP } from "node:net";
import { z } from "zod";

/** Matches an origin, possibly with a path of plain segments. */
export const HTTP_ADDRESS = /^https?:\/\/[^/?#\s@]+(\/[\w~-][\w.~-]*)*\/?$/;
export const ORIGIN_URL = /^https?:\/\/[^/?#\s@]+\/?$/;
const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const WILDCARD_ADDRESS = /^0\.0\.0\.0$|^[0:]+$|%/;

/** S3 bucket with a path prefix under which media files are stored. */
export interface MediaBucket {
  bucket: string;
  prefix: string;
  endpoint: string | null;
  region: string;
}

/** Number of characters of a rejected value that a message shows. */
const REJECTED_SHOWN_LENGTH = 100;

/** Returns a rejected value for a message. Shows only the length of a secret, and of a URL with credentials or a query. */
export function describeRejected(input: string, { isSecret }: { isSecret: boolean }): string {
  const colon = input.indexOf(":");
  const mayHaveCredentials = (colon !== -1 && input.includes("@", colon)) || input.includes("?");
  if (isSecret || mayHaveCredentials) return `${input.length} characters, not shown because they can contain a secret`;
  return JSON.stringify(input.length > REJECTED_SHOWN_LENGTH ? `${input.slice(0, REJECTED_SHOWN_LENGTH)}…` : input);
}

/** @param read returns the value of a text, or undefined for a faulty one */
export function parsedBy<T>(expected: string, read: (text: string) => T | undefined) {
  return z.string().transform((input, context): T => {
    const value = read(input);
    if (value !== undefined) return value;
    context.issues.push({ code: "custom", message: expected, input });
    return z.NEVER;
  });
}

export const text = z.string();

export const textMatching = (pattern: RegExp, expected: string) =>
  parsedBy(expected, (input) => (pattern.test(input) ? input : undefined));

export const integerBetween = (min: number, max: number) =>
  parsedBy(`a whole number from ${min} to ${max}`, (input) => {
    const value = Number(input);
    return /^\d+$/.test(input) && value >= min && value <= max ? value : undefined;
  });

export const oneOf = <const T extends string>(...allowed: readonly T[]) =>
  parsedBy(`one of ${allowed.join(", ")}`, (input) => allowed.find((value) => value === input));

/** Parses a switch that has one of two words. Returns true for the first. */
export const booleanFromWords = (on: string, off: string) => oneOf(on, off).transform((value) => value === on);

/** Parses parts between commas, each without spaces around it. */
export const listOf = <T>(expected: string, read: (part: string) => T | undefined) =>
  parsedBy(expected, (input) => {
    const values = input.split(",").map((part) => read(part.trim()));
    return values.includes(undefined) ? undefined : (values as T[]);
  });

/** Parses a URL. Returns it without its trailing slash. */
export const url = (pattern: RegExp, expected: string) =>
  parsedBy(expected, (input) => (pattern.test(input) && URL.canParse(input) ? input.replace(/\/$/, "") : undefined));

export const ipAddress = parsedBy("an IP address of this machine", (input) => (isIP(input) === 0 ? undefined : input));

/** Parses an address to which others can connect. */
export const reachableAddress = parsedBy("one IP address of this machine, under which browsers reach it", (input) =>
  isIP(input) === 0 || WILDCARD_ADDRESS.test(input) ? undefined : input,
);

/** True for an address, or a network such as 10.0.0.0/8 that is not the whole internet. */
function isNetworkRange(part: string): boolean {
  const [address = "", bits, more] = part.split("/");
  const family = isIP(address);
  if (family === 0 || more !== undefined) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** Parses a number of proxies, or their addresses and networks. */
export const trustedProxies = parsedBy(
  "how many proxies stand before this service (1 to 9), or their addresses and networks, separated by commas",
  (input): number | string[] | undefined => {
    if (/^[1-9]$/.test(input)) return Number(input);
    const networks = input.split(",").map((part) => part.trim());
    return networks.every(isNetworkRange) ? networks : undefined;
  },
);

export const webSockets = listOf("ws:// or wss:// addresses separated by commas (a comma in one is %2C)", (part) => {
  const address = URL.parse(part);
  return address !== null && /^wss?:$/.test(address.protocol) && address.hash === "" ? address.href : undefined;
});

/** Parses `s3://bucket/prefix?endpoint=…&region=…`. */
export const bucketUrl = parsedBy(
  "an address such as s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1, without credentials",
  (input): MediaBucket | undefined => {
    const address = /\s/.test(input) ? null : URL.parse(input);
    if (address?.protocol !== "s3:" || address.username || address.password || address.port || address.hash) return;
    if (![...address.searchParams.keys()].every((key) => key === "endpoint" || key === "region")) return;
    const endpoint = address.searchParams.get("endpoint");
    const region = address.searchParams.get("region") ?? "us-east-1";
    const prefix = address.pathname.split("/").filter(Boolean).join("/");
    const isEndpoint = endpoint === null || (ORIGIN_URL.test(endpoint) && URL.canParse(endpoint));
    const isSound =
      BUCKET_NAME.test(address.hostname) &&
      /^[\w!.*'()/-]*$/.test(prefix) &&
      /^[a-z0-9-]{1,40}$/.test(region) &&
      isEndpoint;
    return isSound ? { bucket: address.hostname, prefix, endpoint, region } : undefined;
  },
);

export const timeZone = parsedBy("an IANA time zone such as Europe/Berlin", (input) => {
  try {
    new Intl.DateTimeFormat("en", { timeZone: input });
    return input;
  } catch {
    return undefined;
  }
});

export const encryptionKeys = listOf(
  "32 bytes in base64, or several such keys separated by commas, the current one first",
  (part) => {
    const key = Buffer.from(part, "base64");
    return key.length === 32 ? key : undefined;
  },
);
