/**
 * Creates `Svc.App.V3.Actions.request` and `Svc.App.Settings.get` for server runs. The server run provides the function
 * that sends requests.
 */
import { toPlainObject } from "./plain-object.js";
import type { RequestError, RequestOptions, RequestResponse, SendRequest, SettingsReader } from "./request-types.js";

/** Functions and data that a server run provides for requests to other services and for settings. */
export interface OutgoingTransport {
  /** Sends a request, described by the JSON of its options. */
  request(options: string): Promise<{ head: unknown[]; text(): Promise<string> }>;
  /** JSON text of `context.settings`. */
  settings: string;
}

const UNAVAILABLE_TEXT = "is available in server actions only";

// Stores the globals before the author's code runs, because that code may replace them.
const { parse, stringify } = JSON;
// biome-ignore lint/suspicious/noExplicitAny: TypeScript's types lack the newer functions for base64
const Uint8ArrayWithBase64 = Uint8Array as any;

const createRequestError = (code: RequestError["code"], message: string): RequestError =>
  Object.assign(new Error(message), { code });

const isForm = (body: unknown): boolean => typeof URLSearchParams === "function" && body instanceof URLSearchParams;

function encodeBody(body: unknown): unknown {
  if (body instanceof ArrayBuffer) return { base64: new Uint8ArrayWithBase64(body).toBase64() };
  if (!ArrayBuffer.isView(body)) return isForm(body) ? String(body) : body;
  return { base64: new Uint8ArrayWithBase64(body.buffer, body.byteOffset, body.byteLength).toBase64() };
}

/** Adds the content type of a form, as `fetch` does, unless the author has set another one. */
function addFormContentType(headers: unknown): unknown {
  if (headers !== undefined && (typeof headers !== "object" || headers === null || Array.isArray(headers)))
    return headers;
  const hasContentType = Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "content-type");
  return hasContentType ? headers : { ...headers, "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8" };
}

/** Returns the options of a request as JSON for the service. @throws RequestError POLICY if JSON cannot represent them */
function encodeOptions(options: unknown): string {
  if (typeof options !== "object" || options === null) return stringify(options) ?? "null";
  const { url, headers, query, form, body, json, ...otherOptions } = options as RequestOptions;
  try {
    const plainHeaders = toPlainObject(headers);
    const text = stringify({
      ...otherOptions,
      url: url === undefined || url === null ? url : String(url),
      headers: isForm(body) ? addFormContentType(plainHeaders) : plainHeaders,
      query: toPlainObject(query),
      form: toPlainObject(form),
      body: encodeBody(body),
      // `json` is converted to text here, so that the service sends exactly this JSON.
      json: json === undefined ? undefined : stringify(json),
    });
    // `stringify` returns undefined if `otherOptions` contain a method `toJSON` that returns undefined.
    return text ?? "null";
  } catch (error) {
    throw createRequestError(
      "POLICY",
      `the options of request() cannot be converted to JSON: ${(error as Error).message}`,
    );
  }
}

function parseJson(text: string, origin: string): unknown {
  try {
    return parse(text);
  } catch {
    throw createRequestError("TRANSPORT", `the body of the response of ${origin} is not JSON`);
  }
}

function createRequestResponse(
  status: number,
  headers: Record<string, string>,
  text: string,
  isBytes: boolean,
  origin: string,
): RequestResponse<unknown> {
  const body = isBytes ? Uint8ArrayWithBase64.fromBase64(text) : text;
  const ok = status >= 200 && status <= 299;
  return {
    status,
    headers,
    body,
    ok,
    json: () => parseJson(isBytes ? new TextDecoder().decode(body) : text, origin) as never,
  };
}

export function createRequestFunctions(transport: OutgoingTransport | undefined): {
  request: SendRequest;
  settings: SettingsReader;
} {
  let settings: Record<string, unknown> | undefined;

  async function request(options: RequestOptions): Promise<RequestResponse<unknown>> {
    if (transport === undefined)
      throw createRequestError("INTEGRATION_UNAVAILABLE", `Svc.App.V3.Actions.request ${UNAVAILABLE_TEXT}`);
    const answer = await transport.request(encodeOptions(options)).catch(() => {
      throw createRequestError(
        "TRANSPORT",
        "the service did not respond to this call of request(), but may have sent the request",
      );
    });
    const [status, headersOrCode, bodyTypeOrMessage, originValue] = answer.head as [number, unknown, unknown, unknown];
    if (status === 0) throw createRequestError(headersOrCode as RequestError["code"], String(bodyTypeOrMessage));
    const text = await answer.text().catch(() => {
      throw createRequestError(
        "TRANSPORT",
        "the service sent the request, but did not return the whole response to this call of request()",
      );
    });
    const origin = String(originValue);
    const headers = headersOrCode as Record<string, string>;
    const response = createRequestResponse(status, headers, text, bodyTypeOrMessage === "bytes", origin);
    if (options.responseType === "json") response.body = text === "" ? null : parseJson(text, origin);
    return response;
  }

  return {
    request: request as SendRequest,
    settings: {
      get(key) {
        if (transport === undefined)
          throw createRequestError("INTEGRATION_UNAVAILABLE", `Svc.App.Settings.get ${UNAVAILABLE_TEXT}`);
        settings ??= parse(transport.settings) as Record<string, unknown>;
        return Object.hasOwn(settings, key) ? settings[key] : undefined;
      },
    },
  };
}
