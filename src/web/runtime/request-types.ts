/** Types of `request`, `response` and `Svc.App.Settings`; with public-types.ts served as svc.d.ts. Types alone. */

type RequestParameter = string | number | boolean | null | undefined;

/** Options of `Svc.App.V3.Actions.request`. */
export interface RequestOptions {
  /** URL on an origin of the action's `integrationOrigins`, without credentials. https, or with `ALLOW_PRIVATE_NETWORK=1` also http. */
  url: string | URL;
  /** Default `GET`. */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  headers?: Record<string, string | number>;
  /** Added to the URL's own query. */
  query?: Record<string, RequestParameter | RequestParameter[]>;
  /** At most 1 MB; not with `GET` and `HEAD`. Only one of `body`, `json` and `form`. */
  body?: string | ArrayBuffer | ArrayBufferView;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as `application/x-www-form-urlencoded`. */
  form?: Record<string, RequestParameter | RequestParameter[]>;
  /** Key of a secret binding: the service adds the credential, which the code never receives. */
  auth?: string;
  /** Default 10,000, at most 30,000. */
  timeoutMs?: number;
  /** Type of `body` in the response; default `text`. */
  responseType?: "text" | "json" | "bytes";
  /** For idempotent methods, or with the header `Idempotency-Key`. `attempts` counts the first one; default of `on`: 429, 502, 503, 504. */
  retry?: { attempts: number; on?: number[] };
}

/** Response of any HTTP status. */
export interface RequestResponse<Body = string> {
  status: number;
  /** Names in lower case; without `Set-Cookie`. */
  headers: Record<string, string>;
  /** By `responseType`: a string, parsed JSON or a Uint8Array. */
  body: Body;
  /** True for a status from 200 to 299. */
  ok: boolean;
  /** Parses the body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape, as JSON.parse returns it
  json<Value = any>(): Value;
}

/**
 * Rejection of `request`. `POLICY`: not allowed; `LIMIT`: too many or too large; `TIMEOUT`; `UNSUPPORTED`: unknown encoding or charset;
 * `TRANSPORT`: DNS, TCP, TLS or decoding failed; `INTEGRATION_UNAVAILABLE`: not a server action.
 */
export interface RequestError extends Error {
  code: "POLICY" | "LIMIT" | "TIMEOUT" | "UNSUPPORTED" | "TRANSPORT" | "INTEGRATION_UNAVAILABLE";
}

/** `Svc.App.V3.Actions.request`. */
export interface SendRequest {
  (options: RequestOptions & { responseType: "bytes" }): Promise<RequestResponse<Uint8Array>>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  (options: RequestOptions & { responseType: "json" }): Promise<RequestResponse<any>>;
  (options: RequestOptions): Promise<RequestResponse>;
}

/** `Svc.App.Settings`. */
export interface SettingsReader {
  /** The setting, as `context.settings[key]`; undefined if it is not set. In server actions only. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  get(key: string): any;
}

/** Answer of an HTTP trigger. */
export interface ResponseOptions {
  /** 200 by default, 302 with `redirect`. */
  status?: number;
  /** Cookies, CORS, CSP and connection headers are dropped. */
  headers?: Record<string, string | number>;
  /** Text, bytes, or a value that is sent as JSON. */
  body?: unknown;
  /** URL for `Location`. */
  redirect?: string;
}
