/** Validates the options of `Svc.App.V3.Actions.request()`, which come from untrusted code (contract, section 9). */
import {
  OUTGOING_REQUEST_BODY_MAX_BYTES,
  OUTGOING_REQUEST_TIMEOUT_DEFAULT_MS,
  OUTGOING_REQUEST_TIMEOUT_MAX_MS,
} from "../limits.js";
import { describeType, describeValue, isObject } from "./describe-value.js";
import { normalizeHost, normalizeOrigin } from "./integration-origins.js";
import { findNearestName } from "./unknown-fields.js";

const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const METHODS_WITHOUT_BODY: readonly string[] = ["GET", "HEAD"];
const IDEMPOTENT_METHODS: readonly string[] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];
const RESPONSE_TYPES = ["text", "json", "bytes"] as const;
const OPTION_NAMES = [
  "url",
  "method",
  "headers",
  "query",
  "body",
  "json",
  "form",
  "auth",
  "timeoutMs",
  "responseType",
  "retry",
];

const URL_MAX_CHARACTERS = 8_192;
const HEADERS_MAX = 100;
const HEADERS_MAX_CHARACTERS = 16_384;
const PARAMETERS_MAX = 1_000;
const ATTEMPTS_MAX = 5;
const RETRY_STATUSES_MAX = 20;
const DEFAULT_RETRY_STATUSES: readonly number[] = [429, 502, 503, 504];

const HEADER_NAME_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Matches header values of Latin-1 characters without ASCII control characters, except tab. A line break could add another header. */
const HEADER_VALUE_PATTERN = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Matches headers that code cannot set: cookies, headers that the service sets, and headers that describe only one connection. */
const FORBIDDEN_HEADER_PATTERN =
  /^(?:cookie2?|set-cookie2?|host|content-length|referer|auth-token.*|svc-.*|proxy-.*|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|http2-settings)$/;

export type ResponseType = (typeof RESPONSE_TYPES)[number];

export interface RequestDescription {
  url: URL;
  method: string;
  headers: Record<string, string>;
  body: Uint8Array | null;
  /** Key of the secret binding whose value the service adds to the request; null for none. */
  auth: string | null;
  timeoutMs: number;
  responseType: ResponseType;
  retry: { attempts: number; on: number[] } | undefined;
}

export class RequestOptionsError extends Error {
  constructor(
    readonly code: "POLICY" | "LIMIT",
    message: string,
  ) {
    super(message);
  }
}

function throwOptionsError(message: string): never {
  throw new RequestOptionsError("POLICY", message);
}

export const isForbiddenRequestHeader = (name: string): boolean => FORBIDDEN_HEADER_PATTERN.test(name.toLowerCase());

export const isHeaderName = (name: string): boolean => HEADER_NAME_PATTERN.test(name);
export const isHeaderValue = (value: string): boolean => HEADER_VALUE_PATTERN.test(value);

function readUrl(value: unknown): URL {
  if (typeof value !== "string" || value.length > URL_MAX_CHARACTERS) {
    throwOptionsError(`url must be a string of at most ${URL_MAX_CHARACTERS} characters (got ${describeType(value)})`);
  }
  const url = URL.parse(value as string);
  if (!url || !/^https?:$/.test(url.protocol))
    throwOptionsError(
      "url must be an absolute https URL, such as https://api.example.com/orders (got an invalid URL or another scheme)",
    );
  if (url!.username !== "" || url!.password !== "") throwOptionsError("url must not contain credentials");
  const host = normalizeHost(url!.hostname);
  if (host === null) throwOptionsError("url must contain a valid host name, such as api.example.com");
  url!.hostname = host!;
  url!.hash = "";
  return url!;
}

/** Yields the name-value pairs of the option `query` or `form`. An array yields one pair for each element. Skips null and undefined. */
function* readPairs(value: unknown, field: string): Generator<[string, string]> {
  if (!isObject(value)) throwOptionsError(`${field} must be an object (got ${describeValue(value)})`);
  let count = 0;
  for (const [name, input] of Object.entries(value as object)) {
    for (const item of Array.isArray(input) ? input : [input]) {
      if (item === null || item === undefined) continue;
      if (!["string", "number", "boolean"].includes(typeof item)) {
        throwOptionsError(
          `${field}.${name.slice(0, 60)} must be a string, a number or a boolean (got ${describeType(item)})`,
        );
      }
      count += 1;
      if (count > PARAMETERS_MAX) throwOptionsError(`${field} must have at most ${PARAMETERS_MAX} values`);
      yield [name, String(item)];
    }
  }
}

function readHeaders(value: unknown): Record<string, string> {
  if (!isObject(value)) throwOptionsError(`headers must be an object (got ${describeValue(value)})`);
  const entries = Object.entries(value as object);
  if (entries.length > HEADERS_MAX)
    throwOptionsError(`headers must have at most ${HEADERS_MAX} fields (got ${entries.length})`);
  const headers = new Map<string, string>();
  let characters = 0;
  for (const [input, content] of entries) {
    const name = input.toLowerCase();
    if (!HEADER_NAME_PATTERN.test(input))
      throwOptionsError(`headers has an invalid name (got ${describeValue(input)})`);
    if (FORBIDDEN_HEADER_PATTERN.test(name))
      throwOptionsError(`headers.${input} is not allowed, because code cannot set this header; remove it`);
    if (headers.has(name)) throwOptionsError(`headers.${input} must not be set twice; case is ignored`);
    const text = typeof content === "number" ? String(content) : content;
    // The message contains only the type of the value, because the value may be a secret.
    if (typeof text !== "string" || !HEADER_VALUE_PATTERN.test(text)) {
      throwOptionsError(
        `headers.${input} must be a string without line breaks, of Latin-1 characters (got ${describeType(content)})`,
      );
    }
    headers.set(name, text as string);
    characters += name.length + (text as string).length;
  }
  if (characters > HEADERS_MAX_CHARACTERS)
    throwOptionsError(
      `headers must have at most ${HEADERS_MAX_CHARACTERS} characters of names and values in total (got ${characters})`,
    );
  return Object.fromEntries(headers);
}

interface RequestBody {
  bytes: Uint8Array | null;
  type: string | null;
}

/** Returns the body from the option `body` (a string or `{base64}`), `json` (JSON text that the client library made) or `form`. */
function readBody(options: Record<string, unknown>): RequestBody {
  const bodyFields = ["body", "json", "form"].filter((name) => options[name] !== undefined && options[name] !== null);
  if (bodyFields.length > 1) throwOptionsError(`options must contain only one of ${bodyFields.join(" and ")}`);
  const { body, json, form } = options;
  if (typeof json === "string") return { bytes: Buffer.from(json), type: "application/json" };
  if (bodyFields[0] === "json")
    throwOptionsError(`json must be a value that can be serialized as JSON (got ${describeValue(json)})`);
  if (bodyFields[0] === "form") {
    const text = new URLSearchParams([...readPairs(form, "form")]).toString();
    return { bytes: Buffer.from(text), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  }
  if (typeof body === "string") return { bytes: Buffer.from(body), type: "text/plain;charset=UTF-8" };
  if (isObject(body) && typeof body["base64"] === "string") {
    return { bytes: Buffer.from(body["base64"], "base64"), type: null };
  }
  if (bodyFields[0] === "body") throwOptionsError(`body must be a string or bytes (got ${describeValue(body)})`);
  return { bytes: null, type: null };
}

function readInteger(value: unknown, field: string, min: number, max: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  return throwOptionsError(`${field} must be a whole number from ${min} to ${max} (got ${describeValue(value)})`);
}

function readRetry(value: unknown, method: string, headers: Record<string, string>): RequestDescription["retry"] {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return throwOptionsError(`retry must be an object (got ${describeValue(value)})`);
  const unknownField = Object.keys(value).find((name) => !["attempts", "on"].includes(name));
  if (unknownField !== undefined)
    throwOptionsError(`retry.${unknownField.slice(0, 60)} is not an option; retry can have "attempts" and "on"`);
  if (!IDEMPOTENT_METHODS.includes(method) && headers["idempotency-key"] === undefined) {
    throwOptionsError(`retry of ${method} requires the header Idempotency-Key`);
  }
  const { attempts, on = DEFAULT_RETRY_STATUSES } = value;
  if (!Array.isArray(on) || on.length > RETRY_STATUSES_MAX) {
    return throwOptionsError(
      `retry.on must be an array of at most ${RETRY_STATUSES_MAX} HTTP statuses (got ${describeValue(on)})`,
    );
  }
  return {
    attempts: readInteger(attempts, "retry.attempts", 1, ATTEMPTS_MAX),
    on: on.map((status, index) => readInteger(status, `retry.on[${index}]`, 100, 599)),
  };
}

function rejectUnknownOptions(options: Record<string, unknown>): void {
  const unknownField = Object.keys(options).find((name) => !OPTION_NAMES.includes(name));
  if (unknownField === undefined) return;
  throwOptionsError(
    `${unknownField.slice(0, 60)} is not an option; the nearest option is ${findNearestName(unknownField, OPTION_NAMES)}`,
  );
}

/**
 * Returns the origin of the option `url` even if other options are invalid; null if the URL has no valid origin. Used in error messages.
 */
export function parseRequestedOrigin(options: unknown): string | null {
  const input = isObject(options) ? options["url"] : null;
  if (typeof input !== "string" || input.length > URL_MAX_CHARACTERS) return null;
  const url = URL.parse(input);
  return url && normalizeOrigin(url);
}

export function parseRequestOptions(options: unknown): RequestDescription {
  if (!isObject(options)) return throwOptionsError(`options must be an object (got ${describeValue(options)})`);
  rejectUnknownOptions(options);
  const { method: verb = "GET", auth = null, timeoutMs, responseType = "text" } = options;
  const method = typeof verb === "string" ? verb.toUpperCase() : "";
  if (!METHODS.includes(method))
    throwOptionsError(`method must be one of ${METHODS.join(", ")} (got ${describeValue(verb)})`);
  const url = readUrl(options["url"]);
  for (const pair of readPairs(options["query"] ?? {}, "query")) url.searchParams.append(...pair);
  if (url.href.length > URL_MAX_CHARACTERS)
    throwOptionsError(`url with query must have at most ${URL_MAX_CHARACTERS} characters (got ${url.href.length})`);
  const headers = readHeaders(options["headers"] ?? {});
  const { bytes, type } = readBody(options);
  if (bytes !== null && METHODS_WITHOUT_BODY.includes(method))
    throwOptionsError(`a ${method} request must not have a body; remove body, json or form`);
  if (bytes !== null && bytes.byteLength > OUTGOING_REQUEST_BODY_MAX_BYTES) {
    throw new RequestOptionsError("LIMIT", `the request body must be at most 1 MB (got ${bytes.byteLength} bytes)`);
  }
  if (type !== null) headers["content-type"] ??= type;
  if (auth !== null && typeof auth !== "string")
    throwOptionsError(
      `auth must be a string, the key of a secret binding such as __stripe (got ${describeValue(auth)})`,
    );
  if (!RESPONSE_TYPES.includes(responseType as ResponseType)) {
    throwOptionsError(`responseType must be one of ${RESPONSE_TYPES.join(", ")} (got ${describeValue(responseType)})`);
  }
  return {
    url,
    method,
    headers,
    body: bytes,
    auth: auth as string | null,
    timeoutMs: readInteger(
      timeoutMs ?? OUTGOING_REQUEST_TIMEOUT_DEFAULT_MS,
      "timeoutMs",
      1,
      OUTGOING_REQUEST_TIMEOUT_MAX_MS,
    ),
    responseType: responseType as ResponseType,
    retry: readRetry(options["retry"], method, headers),
  };
}
