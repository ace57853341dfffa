/** Builds the response of an HTTP trigger from the action's result, without the headers that actions must not set (contract, section 8). */
import { responseFault } from "./response.js";

/** A response before it is sent. */
export interface HttpAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array | null;
}

/**
 * Headers that an action cannot set. They affect other pages of the origin, describe the connection, or are reserved for
 * the service.
 */
const DROPPED_HEADERS = [
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
const DROPPED_PREFIXES = ["access-control-", "svc-"];

const isDropped = (name: string): boolean =>
  DROPPED_HEADERS.includes(name) || DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix));

const WITHOUT_BODY = [204, 205, 304];

function headersIn(headers: unknown): Record<string, string> {
  const entries = Object.entries((headers ?? {}) as Record<string, string | number>);
  const lowerCaseEntries = entries.map(([name, value]) => [name.toLowerCase(), String(value)] as const);
  return Object.fromEntries(lowerCaseEntries.filter(([name]) => !isDropped(name)));
}

function bodyIn({ body, base64 }: Record<string, unknown>): { body: HttpAnswer["body"]; type: string | null } {
  if (typeof base64 === "string") return { body: Buffer.from(base64, "base64"), type: "application/octet-stream" };
  if (body === undefined || body === null) return { body: null, type: null };
  if (typeof body === "string") return { body, type: "text/plain; charset=utf-8" };
  return { body: JSON.stringify(body), type: "application/json; charset=utf-8" };
}

/** Builds the response from options of `Svc.App.V3.Actions.response(options)`; null if they are invalid. */
export function answerFromOptions(options: unknown): HttpAnswer | null {
  if (responseFault(options) !== null) return null;
  const input = options as Record<string, unknown>;
  const redirect = input["redirect"] ?? null;
  const headers = headersIn(input["headers"]);
  if (redirect !== null) headers["location"] = redirect as string;
  const status = (input["status"] as number | null | undefined) ?? (redirect === null ? 200 : 302);
  if (WITHOUT_BODY.includes(status)) return { status, headers, body: null };
  const { body, type } = bodyIn(input);
  if (type !== null) headers["content-type"] ??= type;
  return { status, headers, body };
}

/** Builds the response from the result of `execute` as JSON text or its UTF-8 bytes; undefined if it returned nothing. */
export function answerFromJson(json: string | Uint8Array | undefined): HttpAnswer {
  if (json === undefined) return { status: 204, headers: {}, body: null };
  return { status: 200, headers: { "content-type": "application/json; charset=utf-8" }, body: json };
}

/** Headers of every response of an HTTP trigger. They prevent a page in it from acting with the rights of the service's origin. */
export const GUARD_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox allow-scripts allow-forms",
  "referrer-policy": "no-referrer",
} as const;
