/** Parses the query, headers and body of a request for the payload of an HTTP trigger. */
import { JSON_MAX_DEPTH } from "../../limits.js";
import { nestsDeeperThan } from "../described.js";

type Values = Record<string, string | string[]>;

/** Converts name-value pairs to an object. A repeated name gets an array of its values. The name `__proto__` is safe. */
export function valuesOf(pairs: Iterable<readonly [string, string]>): Values {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of pairs) {
    const knownValue = values.get(name);
    values.set(name, knownValue === undefined ? value : [knownValue, value].flat());
  }
  return Object.fromEntries(values);
}

/** Headers with credentials for the service, which actions must not receive. */
const HIDDEN_HEADERS = ["cookie", "auth-token"];

/**
 * Returns the headers that the action receives, with names in lower case.
 * @param hidesAuthorization true to leave out `authorization`, because the service has already checked it
 * @param secret secret segment of the path; it is masked in headers, because a proxy may repeat the path in one
 */
export function headersFor(
  headers: NodeJS.Dict<string | string[]>,
  { hidesAuthorization, secret }: { hidesAuthorization: boolean; secret: string | null },
): Record<string, string> {
  const visibleHeaders = Object.entries(headers).filter(
    ([name, value]) =>
      value !== undefined && !HIDDEN_HEADERS.includes(name) && !(hidesAuthorization && name === "authorization"),
  );
  const withoutSecret = (text: string) => (secret === null ? text : text.replaceAll(secret, "«secret»"));
  return Object.fromEntries(visibleHeaders.map(([name, value]) => [name, withoutSecret([value].flat().join(", "))]));
}

/** Returns type and subtype of a content type, in lower case; "" if absent. */
export const mediaTypeOf = (contentType: string | null): string =>
  (contentType ?? "").split(";", 1)[0]!.trim().toLowerCase();

const isJson = (type: string): boolean => type === "application/json" || type.endsWith("+json");
const isText = (type: string): boolean =>
  type.startsWith("text/") || type === "application/xml" || type.endsWith("+xml") || type === "application/javascript";

function textOf(body: Uint8Array, contentType: string | null): string | null {
  const charset = /;\s*charset="?([\w.:-]{1,40})"?/i.exec(contentType ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset, { ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}

function jsonOf(body: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return nestsDeeperThan(value, JSON_MAX_DEPTH) ? null : value;
  } catch {
    return null;
  }
}

/** Returns the fields of a multipart form; a file is `{filename, contentType, base64}`. */
async function multipartOf(body: Uint8Array<ArrayBuffer>, contentType: string): Promise<unknown> {
  try {
    const form = await new Response(body, { headers: { "content-type": contentType } }).formData();
    const fields = new Map<string, unknown[]>();
    for (const [name, value] of form) {
      const field =
        typeof value === "string"
          ? value
          : {
              filename: value.name,
              contentType: value.type,
              base64: Buffer.from(await value.arrayBuffer()).toString("base64"),
            };
      fields.set(name, [...(fields.get(name) ?? []), field]);
    }
    return Object.fromEntries([...fields].map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
  } catch {
    return null;
  }
}

/** Parses a body of JSON, form fields or text. Returns null for other types, an empty body, and a body that does not match its type. */
export async function parsedBody(body: Uint8Array<ArrayBuffer>, contentType: string | null): Promise<unknown> {
  const type = mediaTypeOf(contentType);
  if (body.length === 0) return null;
  if (isJson(type)) return jsonOf(body);
  if (type === "application/x-www-form-urlencoded") return valuesOf(new URLSearchParams(textOf(body, null) ?? ""));
  if (type === "multipart/form-data") return multipartOf(body, contentType!);
  return isText(type) ? textOf(body, contentType) : null;
}
