/** Parses the query, headers and body of an HTTP request to the payload of the action that the request starts. */
import { JSON_MAX_DEPTH } from "../../limits.js";
import { nestsDeeperThan } from "../describe-value.js";

type NamedValues = Record<string, string | string[]>;

/** Converts name-value pairs to an object. A repeated name gets an array. `__proto__` is an ordinary name. */
export function groupValuesByName(pairs: Iterable<readonly [string, string]>): NamedValues {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of pairs) {
    const knownValue = values.get(name);
    values.set(name, knownValue === undefined ? value : [knownValue, value].flat());
  }
  return Object.fromEntries(values);
}

const HIDDEN_HEADERS = ["cookie", "auth-token"];

/**
 * Returns the headers that the action receives, with names in lower case.
 * @param hidesAuthorization true to leave out `authorization`, because the service has checked these credentials itself
 * @param secrets secret segment of the request's path, percent-encoded and decoded. It is masked in all headers, because a proxy may add the
 *   path to a header
 */
export function selectHeadersForAction(
  headers: NodeJS.Dict<string | string[]>,
  { hidesAuthorization, secrets }: { hidesAuthorization: boolean; secrets: readonly string[] },
): Record<string, string> {
  const visibleHeaders = Object.entries(headers).filter(
    ([name, value]) =>
      value !== undefined && !HIDDEN_HEADERS.includes(name) && !(hidesAuthorization && name === "authorization"),
  );
  const maskSecrets = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "«secret»"), text);
  return Object.fromEntries(visibleHeaders.map(([name, value]) => [name, maskSecrets([value].flat().join(", "))]));
}

/** Returns a content type without parameters, such as `text/html`, in lower case; "" if the request has no content type. */
export const getMediaType = (contentType: string | null): string =>
  (contentType ?? "").split(";", 1)[0]!.trim().toLowerCase();

const isJsonType = (type: string): boolean => type === "application/json" || type.endsWith("+json");
const isTextType = (type: string): boolean =>
  type.startsWith("text/") || type === "application/xml" || type.endsWith("+xml") || type === "application/javascript";

function decodeText(body: Uint8Array, contentType: string | null): string | null {
  const charset = /;\s*charset="?([\w.:-]{1,40})"?/i.exec(contentType ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset, { ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}

function parseJson(body: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return nestsDeeperThan(value, JSON_MAX_DEPTH) ? null : value;
  } catch {
    return null;
  }
}

/** Returns the fields of a multipart form; null if the form is invalid. A file becomes `{filename, contentType, base64}`. */
async function parseMultipart(body: Uint8Array<ArrayBuffer>, contentType: string): Promise<unknown> {
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

/** Parses a body of JSON, form fields or text. Returns null for an invalid or empty body, and for other content types. */
export async function parseBody(body: Uint8Array<ArrayBuffer>, contentType: string | null): Promise<unknown> {
  const type = getMediaType(contentType);
  if (body.length === 0) return null;
  if (isJsonType(type)) return parseJson(body);
  if (type === "application/x-www-form-urlencoded")
    return groupValuesByName(new URLSearchParams(decodeText(body, null) ?? ""));
  if (type === "multipart/form-data") return parseMultipart(body, contentType!);
  return isTextType(type) ? decodeText(body, contentType) : null;
}
