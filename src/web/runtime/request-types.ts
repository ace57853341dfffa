/** Public types of `request`, `response` and `Svc.App.Settings`. The build adds them to svc.d.ts. This file contains only types. */

type RequestParameter = string | number | boolean | null | undefined;

/** Options of `Svc.App.V3.Actions.request`. */
export interface RequestOptions {
  /** URL on an origin of the action's `integrationOrigins`, without credentials. https, or with `ALLOW_PRIVATE_NETWORK=1` also http. */
  url: string | URL;
  /** HTTP method; `GET` by default. */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  headers?: Record<string, string | number> | Headers;
  /** Query parameters to add to the query of `url`. */
  query?: Record<string, RequestParameter | RequestParameter[]> | URLSearchParams;
  /** Body of the request, at most 1 MB; not allowed with `GET` and `HEAD`. Set only one of `body`, `json` and `form`. */
  body?: string | URLSearchParams | ArrayBuffer | ArrayBufferView;
  /** Value that is sent as JSON. */
  json?: unknown;
  /** Fields that are sent as `application/x-www-form-urlencoded`. */
  form?: Record<string, RequestParameter | RequestParameter[]> | URLSearchParams;
  /** Key of a secret binding: the service adds the credential, which the code never receives. */
  auth?: string;
  /** Time limit of the request in milliseconds: 10,000 by default, at most 30,000. */
  timeoutMs?: number;
  /** Type of `body` in the response; default `text`. */
  responseType?: "text" | "json" | "bytes";
  /** Repeats failed requests. Allowed for idempotent methods, or with the header `Idempotency-Key`. `attempts` includes the first request. `on` lists the statuses to repeat after; default: 429, 502, 503, 504. */
  retry?: { attempts: number; on?: number[] };
}

/** Response of any HTTP status. */
export interface RequestResponse<Body = string> {
  status: number;
  /** Response headers with names in lower case, without `Set-Cookie`. */
  headers: Record<string, string>;
  /** Body in the form that `responseType` selects: a string, parsed JSON or a Uint8Array. */
  body: Body;
  /** True for a status from 200 to 299. */
  ok: boolean;
  /** Parses the body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape, as JSON.parse returns it
  json<Value = any>(): Value;
}

/**
 * Rejection of `request`. `POLICY`: the request is not allowed. `LIMIT`: too many requests, or too much data. `TIMEOUT`: too slow.
 * `UNSUPPORTED`: unknown encoding or charset of the response. `TRANSPORT`: the connection or the service failed, or the response is
 * damaged. `INTEGRATION_UNAVAILABLE`: the code does not run in a server action.
 */
export interface RequestError extends Error {
  code: "POLICY" | "LIMIT" | "TIMEOUT" | "UNSUPPORTED" | "TRANSPORT" | "INTEGRATION_UNAVAILABLE";
}

/** `Svc.App.V3.Actions.request`. */
export interface SendRequest {
  (options: RequestOptions & { responseType: "bytes" }): Promise<RequestResponse<Uint8Array>>;
  // biome-ignore lint/suspicious/noExplicitAny: the type of the JSON body is not known
  (options: RequestOptions & { responseType: "json" }): Promise<RequestResponse<any>>;
  (options: RequestOptions): Promise<RequestResponse>;
}

/** `Svc.App.Settings`. */
export interface SettingsReader {
  /** Returns the same value as `context.settings[key]`; undefined if the setting does not exist. Works only in server actions. */
  // biome-ignore lint/suspicious/noExplicitAny: a setting can have any JSON value
  get(key: string): any;
}

/** Response that an action sends to the request of its HTTP trigger. */
export interface ResponseOptions {
  /** HTTP status: 200 by default, 302 if `redirect` is set. */
  status?: number;
  /** Response headers. The service drops headers whose effect is not limited to this response: docs/reference/http-triggers.md lists them. */
  headers?: Record<string, string | number> | Headers;
  /** Body of the response: text, bytes, or another value, which is sent as JSON. */
  body?: unknown;
  /** URL to redirect to, sent in the header `Location`. */
  redirect?: string;
}
