/** Parsers for the values of environment variables. The error message of a parser completes "NAME must be …". */
import { isIP } from "node:net";
import { z } from "zod";

/** Matches an http or https URL of an origin, optionally with a path but without a query. */
export const HTTP_URL_PATTERN = /^https?:\/\/[^/?#\s@]+(\/[\w~-][\w.~-]*)*\/?$/;
export const ORIGIN_URL_PATTERN = /^https?:\/\/[^/?#\s@]+\/?$/;
const BUCKET_NAME_PATTERN = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const WILDCARD_ADDRESS_PATTERN = /^0\.0\.0\.0$|^[0:]+$|%/;

/** S3 bucket for media files, and the prefix of their keys. */
export interface MediaBucket {
  bucket: string;
  prefix: string;
  endpoint: string | null;
  region: string;
}

const SHOWN_VALUE_LENGTH = 100;

/**
 * Returns a rejected value for an error message, shortened to 100 characters. If the value may contain a secret, returns only its length.
 */
export function describeRejectedValue(input: string, { isSecret }: { isSecret: boolean }): string {
  const colonIndex = input.indexOf(":");
  const mayHaveCredentials = (colonIndex !== -1 && input.includes("@", colonIndex)) || input.includes("?");
  if (isSecret || mayHaveCredentials) return `${input.length} characters, not shown because they can contain a secret`;
  return JSON.stringify(input.length > SHOWN_VALUE_LENGTH ? `${input.slice(0, SHOWN_VALUE_LENGTH)}…` : input);
}

/**
 * Creates a schema that parses a text.
 * @param expected completes the message "NAME must be …"
 * @param read returns undefined for an invalid text
 */
export function createSchemaFromParser<T>(expected: string, read: (text: string) => T | undefined) {
  return z.string().transform((input, context): T => {
    const value = read(input);
    if (value !== undefined) return value;
    context.issues.push({ code: "custom", message: expected, input });
    return z.NEVER;
  });
}

export const textSchema = z.string();

export const createPatternSchema = (pattern: RegExp, expected: string) =>
  createSchemaFromParser(expected, (input) => (pattern.test(input) ? input : undefined));

export const createIntegerSchema = (min: number, max: number) =>
  createSchemaFromParser(`a whole number from ${min} to ${max}`, (input) => {
    const value = Number(input);
    return /^\d+$/.test(input) && value >= min && value <= max ? value : undefined;
  });

export const createEnumSchema = <const T extends string>(...allowed: readonly T[]) =>
  createSchemaFromParser(`one of ${allowed.join(", ")}`, (input) => allowed.find((value) => value === input));

/** Creates a parser for two words: `trueWord` stands for true, `falseWord` for false. */
export const createBooleanSchema = (trueWord: string, falseWord: string) =>
  createEnumSchema(trueWord, falseWord).transform((value) => value === trueWord);

export const createListSchema = <T>(expected: string, read: (part: string) => T | undefined) =>
  createSchemaFromParser(expected, (input) => {
    const values = input.split(",").map((part) => read(part.trim()));
    return values.includes(undefined) ? undefined : (values as T[]);
  });

/** Creates a parser for a URL. Removes a slash at the end. */
export const createUrlSchema = (pattern: RegExp, expected: string) =>
  createSchemaFromParser(expected, (input) =>
    pattern.test(input) && URL.canParse(input) ? input.replace(/\/$/, "") : undefined,
  );

export const ipAddressSchema = createSchemaFromParser("an IP address of this machine", (input) =>
  isIP(input) === 0 ? undefined : input,
);

/** Rejects wildcard addresses such as 0.0.0.0, to which other machines cannot connect. */
export const reachableAddressSchema = createSchemaFromParser(
  "one IP address of this machine, under which browsers reach it",
  (input) => (isIP(input) === 0 || WILDCARD_ADDRESS_PATTERN.test(input) ? undefined : input),
);

/** True for an IP address or a network such as 10.0.0.0/8; false for the network 0.0.0.0/0, which contains all addresses. */
function isNetworkRange(part: string): boolean {
  const [address = "", bits, more] = part.split("/");
  const family = isIP(address);
  if (family === 0 || more !== undefined) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

export const trustedProxiesSchema = createSchemaFromParser(
  "the number of proxies before this service (1 to 9), or their addresses and networks, separated by commas",
  (input): number | string[] | undefined => {
    if (/^[1-9]$/.test(input)) return Number(input);
    const networks = input.split(",").map((part) => part.trim());
    return networks.every(isNetworkRange) ? networks : undefined;
  },
);

export const webSocketUrlsSchema = createListSchema(
  "ws:// or wss:// addresses separated by commas (a comma in one is %2C)",
  (part) => {
    const address = URL.parse(part);
    return address !== null && /^wss?:$/.test(address.protocol) && address.hash === "" ? address.href : undefined;
  },
);

export const bucketUrlSchema = createSchemaFromParser(
  "an address such as s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1, without credentials",
  (input): MediaBucket | undefined => {
    const address = /\s/.test(input) ? null : URL.parse(input);
    if (address?.protocol !== "s3:" || address.username || address.password || address.port || address.hash) return;
    if (![...address.searchParams.keys()].every((key) => key === "endpoint" || key === "region")) return;
    const endpoint = address.searchParams.get("endpoint");
    const region = address.searchParams.get("region") ?? "us-east-1";
    const prefix = address.pathname.split("/").filter(Boolean).join("/");
    const isEndpoint = endpoint === null || (ORIGIN_URL_PATTERN.test(endpoint) && URL.canParse(endpoint));
    const isValid =
      BUCKET_NAME_PATTERN.test(address.hostname) &&
      /^[\w!.*'()/-]*$/.test(prefix) &&
      /^[a-z0-9-]{1,40}$/.test(region) &&
      isEndpoint;
    return isValid ? { bucket: address.hostname, prefix, endpoint, region } : undefined;
  },
);

export const timeZoneSchema = createSchemaFromParser("an IANA time zone such as Europe/Berlin", (input) => {
  try {
    new Intl.DateTimeFormat("en", { timeZone: input });
    return input;
  } catch {
    return undefined;
  }
});

export const encryptionKeysSchema = createListSchema(
  "32 bytes in base64, or several such keys separated by commas, the current one first",
  (part) => {
    const key = Buffer.from(part, "base64");
    return key.length === 32 ? key : undefined;
  },
);
