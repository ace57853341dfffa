/** Builds the response of an HTTP trigger from the action's result (contract, section 8), without headers that actions must not set. */
import { findResponseFault } from "./response.js";

export interface HttpTriggerResponse {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array | null;
}

/** Headers that an action cannot set: they affect other pages of the origin, describe the connection, or belong to the service. */
const FORBIDDEN_HEADERS = [
  ...["set-cookie", "set-cookie2", "clear-site-data", "service-worker-allowed", "content-security-policy"],
  ...["content-security-policy-report-only", "x-content-type-options"],
  ...["strict-transport-security", "alt-svc", "nel", "report-to", "reporting-endpoints", "origin-agent-cluster"],
  ...[
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "content-length",
  ],
  ...["proxy-authenticate", "proxy-authorization"],
];
const FORBIDDEN_HEADER_PREFIXES = ["access-control-", "svc-"];

const isForbiddenHeader = (name: string): boolean =>
  FORBIDDEN_HEADERS.includes(name) || FORBIDDEN_HEADER_PREFIXES.some((prefix) => name.startsWith(prefix));

const CHARSET_PARAMETER_PATTERN = /;\s*charset\s*=\s*(?:"[^"]*"|[^\s;"]+)/i;

const STATUSES_WITHOUT_BODY = [204, 205, 304];

function readHeaders(headers: unknown): Record<string, string> {
  const entries = Object.entries((headers ?? {}) as Record<string, string | number>);
  const lowerCaseEntries = entries.map(([name, value]) => [name.toLowerCase(), String(value)] as const);
  return Object.fromEntries(lowerCaseEntries.filter(([name]) => !isForbiddenHeader(name)));
}

function readBody({ body, base64 }: Record<string, unknown>): {
  body: HttpTriggerResponse["body"];
  type: string | null;
} {
  if (typeof base64 === "string") return { body: Buffer.from(base64, "base64"), type: "application/octet-stream" };
  if (body === undefined || body === null) return { body: null, type: null };
  if (typeof body === "string") return { body, type: "text/plain; charset=utf-8" };
  return { body: JSON.stringify(body), type: "application/json; charset=utf-8" };
}

/** Builds the response from the options of `Svc.App.V3.Actions.response(options)`; null if they are invalid. */
export function createResponseFromOptions(options: unknown): HttpTriggerResponse | null {
  if (findResponseFault(options) !== null) return null;
  const input = options as Record<string, unknown>;
  const redirect = input["redirect"] ?? null;
  const headers = readHeaders(input["headers"]);
  if (redirect !== null) headers["location"] = redirect as string;
  const status = (input["status"] as number | null | undefined) ?? (redirect === null ? 200 : 302);
  if (STATUSES_WITHOUT_BODY.includes(status)) return { status, headers, body: null };
  const { body, type } = readBody(input);
  if (type !== null) headers["content-type"] ??= type;
  // The service sends text in UTF-8. An action may pass on a response of `request()`, whose text is already decoded, but whose headers
  // still describe the original. So these headers are corrected.
  if (!(body instanceof Uint8Array)) {
    delete headers["content-encoding"];
    const contentType = headers["content-type"]?.replace(CHARSET_PARAMETER_PATTERN, "; charset=utf-8");
    if (contentType !== undefined) headers["content-type"] = contentType;
  }
  return { status, headers, body };
}

/**
 * Builds the response from the result of the action's function `execute`.
 * @param json result as JSON text or its UTF-8 bytes; undefined if `execute` returned nothing
 */
export function createResponseFromJson(json: string | Uint8Array | undefined): HttpTriggerResponse {
  if (json === undefined) return { status: 204, headers: {}, body: null };
  return { status: 200, headers: { "content-type": "application/json; charset=utf-8" }, body: json };
}

/** Headers of every response of an HTTP trigger. With them, a page in a response does not get the rights of the service's origin. */
export const TRIGGER_RESPONSE_SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox allow-scripts allow-forms",
  "referrer-policy": "no-referrer",
} as const;
