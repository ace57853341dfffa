/** Connection of the client library to the service: sends requests with the caller's credential. Only this module stores the token. */
import { createSvcError, toSvcError } from "./failure.js";
import { parseJsonLines } from "./lines.js";
import type { Configuration, Env } from "./public-types.js";
import { globalScope } from "./scope.js";
import type { SendToService, ServiceReply } from "./service-transport.js";

export interface Connection {
  /** Sets the passed values. Returns true if a token was passed, or if the service or the app has changed. */
  configure(configuration: Configuration): boolean;
  /** Returns the ID of the configured app. @throws SvcError APP_NOT_FOUND if no app is configured */
  appId(): number;
  /** Returns the URL of a path of the service. @throws SvcError REQUEST_INVALID if no service is set, or the URL is outside of it */
  resolveUrl(path: string): URL;
  /** Sends a request with JSON and returns the body of the response. @throws SvcError */
  request(method: string, path: string, body?: unknown, options?: ConnectionRequestOptions): Promise<ResponseBody>;
  /** Sends a request. Yields the parsed JSON of each line of the response as soon as the line arrives. @throws SvcError */
  lines(method: string, path: string, body: unknown): AsyncIterable<unknown>;
  /** Sends a request whose body or response is not JSON. Returns the response without reading its body. @throws SvcError */
  exchange(method: string, path: string, body?: FormData): Promise<Response>;
  /** Fetches the source of a script with the token, because a script element cannot send a token. @throws SvcError */
  fetchScriptSource(url: URL, integrity: string): Promise<string>;
  getToken(): string | null;
  /**
   * Sets the function that gets a new token after a response with status 401. If the function resolves to true, the
   * connection sends the rejected request again.
   */
  onUnauthorized(renew: () => Promise<boolean>): void;
}

export interface ConnectionRequestOptions {
  /** True: the browser sends the request even when the page closes. Ignored without a body, and if the body is too long. */
  keepalive?: boolean;
  headers?: Record<string, string>;
  /** True: after a response with status 401, rejects instead of getting a new token. Requests for a new token set this, to avoid a loop. */
  skipsTokenRenewal?: boolean;
}

interface ServiceTextRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  keepalive?: boolean;
}

/** Length from which a body is too long for `keepalive`. Browsers limit the bodies of a page's keepalive requests to 64 KB in total. */
const KEEPALIVE_MAX_CHARACTERS = 20_000;

export type ResponseBody = Record<string, unknown>;

/** Returns the base URL of the API without query and fragment, with a trailing slash. */
function parseApiBaseUrl(apiUrl: string): string {
  const url = URL.parse(apiUrl, globalScope.location?.href);
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
  if (!isUsable) throw createSvcError("REQUEST_INVALID", "apiUrl must be an http or https URL without credentials");
  let path = url.pathname;
  while (path.endsWith("/")) path = path.slice(0, -1);
  return `${url.origin}${path}/`;
}

/** Creates the error for a request without a readable response. Browsers do not reveal whether they have blocked the response (CORS). */
const createNoResponseError = (origin: string) =>
  createSvcError("NETWORK_ERROR", `no response from ${origin}, or the browser blocked the response`, {
    answered: false,
  });

const createIncompleteResponseError = (origin: string) =>
  createSvcError("NETWORK_ERROR", `the response from ${origin} ended unexpectedly`, { answered: true });

/** Returns the request body as JSON text. @throws SvcError if JSON cannot represent it */
function toJson(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw createSvcError("REQUEST_INVALID", `the argument cannot be converted to JSON: ${(error as Error).message}`);
  }
}

/** Returns the service's URL: the URL of the library's script without `/client/svc.js` or `/client/svc.mjs`. */
const deriveServiceUrl = (scriptUrl: string): string =>
  scriptUrl.split(/[?#]/, 1)[0]!.replace(/\/client\/svc\.m?js$/, "");

async function readResponseBody(response: ServiceReply, { origin }: URL): Promise<ResponseBody> {
  const text = await response.text().catch(() => {
    throw createIncompleteResponseError(origin);
  });
  let body: unknown = null;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    // The response is not JSON, for example because a proxy has sent its own error page. `body` stays null.
  }
  if (!response.ok || typeof body !== "object" || body === null) {
    const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
    throw toSvcError(Number.isFinite(retryAfter) ? { retryAfter, ...(body ?? {}) } : body, response.status);
  }
  return body as ResponseBody;
}

/**
 * Creates the connection.
 * @param env values of window.ENV, read once, so that a later change of window.ENV cannot send the token to another host
 * @param scriptUrl URL of the library's script, from which the service's URL is derived if `env.apiUrl` is not set
 * @param sendToService function that replaces `fetch` for the requests that it supports
 */
export function createConnection(env: Env, scriptUrl?: string, sendToService?: SendToService): Connection {
  const initialApiUrl =
    env.apiUrl ?? (scriptUrl ? deriveServiceUrl(scriptUrl) : (globalScope.location?.origin ?? "null"));
  // A page without a URL, such as about:blank, must call `Svc.configure` with an `apiUrl` before its first request.
  let apiBaseUrl = initialApiUrl === "null" ? null : parseApiBaseUrl(initialApiUrl);
  let appId = env.appId;
  let token: string | null = env.token ?? null;
  let renew: (() => Promise<boolean>) | null = null;
  // Removes the token from window.ENV, so that code that reads or prints window.ENV does not get it.
  Reflect.deleteProperty(env, "token");

  function createServiceUrl(path: string): URL {
    if (apiBaseUrl === null)
      throw createSvcError(
        "REQUEST_INVALID",
        "the URL of the service is not set; call Svc.configure with apiUrl, or set window.ENV.apiUrl before the page loads the library",
      );
    const url = new URL(path.replace(/^\/+/, ""), apiBaseUrl);
    if (!url.href.startsWith(apiBaseUrl))
      throw createSvcError(
        "REQUEST_INVALID",
        `the path must lead to a URL below ${apiBaseUrl} (got ${url.origin}${url.pathname})`,
      );
    return url;
  }

  /** Sends a request without following redirects, because a redirect could send the credential to another host. */
  async function sendRequest(url: URL, init: RequestInit): Promise<Response> {
    const headers = token === null ? init.headers : { ...init.headers, "Auth-token": token };
    const credentials = token === null ? "same-origin" : "omit";
    try {
      return await fetch(url, { ...init, headers, credentials, redirect: "error", referrerPolicy: "no-referrer" });
    } catch {
      throw createNoResponseError(url.origin);
    }
  }

  /**
   * Sends a request whose body and response are text. Uses `sendToService` if there is a token and the function supports the request,
   * otherwise `fetch`.
   */
  async function requestText(url: URL, init: ServiceTextRequest): Promise<ServiceReply> {
    const { method, headers, body = null } = init;
    const response =
      token === null ? null : sendToService?.({ method, url, headers: { ...headers, "Auth-token": token }, body });
    return (
      (await response?.catch(() => {
        throw createNoResponseError(url.origin);
      })) ?? sendRequest(url, init)
    );
  }

  /** Runs `call`. If the service rejects the token and `renew` gets a new one, repeats `call`: the rejected request has changed nothing. */
  async function callAuthorized<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      const isUnauthorized = (error as { status?: string }).status === "UNAUTHORIZED";
      if (isUnauthorized && (await renew?.())) return call();
      throw error;
    }
  }

  return {
    configure(configuration) {
      const newApiBaseUrl = configuration.apiUrl === undefined ? apiBaseUrl : parseApiBaseUrl(configuration.apiUrl);
      const newAppId = configuration.appId ?? appId;
      const isOtherService = newApiBaseUrl !== apiBaseUrl;
      const isChanged = isOtherService || newAppId !== appId || configuration.token !== undefined;
      if (isOtherService) token = null;
      apiBaseUrl = newApiBaseUrl;
      appId = newAppId;
      if (configuration.token !== undefined) token = configuration.token || null;
      return isChanged;
    },
    appId() {
      if (appId === undefined)
        throw createSvcError(
          "APP_NOT_FOUND",
          "the ID of the app is not set; call Svc.configure with appId, or set window.ENV.appId before the page loads the library",
        );
      return appId;
    },
    resolveUrl: createServiceUrl,
    async request(method, path, body, { keepalive = false, headers = {}, skipsTokenRenewal = false } = {}) {
      const url = createServiceUrl(path);
      const text = body === undefined ? undefined : toJson(body);
      const outlivesPage = keepalive && text !== undefined && text.length < KEEPALIVE_MAX_CHARACTERS;
      const bodyOptions =
        text === undefined
          ? { headers }
          : { body: text, headers: { ...headers, "content-type": "application/json" }, keepalive: outlivesPage };
      const call = async () => readResponseBody(await requestText(url, { method, ...bodyOptions }), url);
      return skipsTokenRenewal ? call() : callAuthorized(call);
    },
    async *lines(method, path, body) {
      const url = createServiceUrl(path);
      const init = { method, body: toJson(body), headers: { "content-type": "application/json" } };
      const reply = await callAuthorized(async () => {
        const received = await requestText(url, init);
        if (!received.ok) await readResponseBody(received, url);
        return received;
      });
      try {
        yield* parseJsonLines(reply);
      } catch {
        throw createIncompleteResponseError(url.origin);
      }
    },
    async exchange(method, path, body) {
      const url = createServiceUrl(path);
      return callAuthorized(async () => {
        const response = await sendRequest(url, { method, ...(body && { body }) });
        if (!response.ok) await readResponseBody(response, url);
        return response;
      });
    },
    async fetchScriptSource(url, integrity) {
      const response = await sendRequest(createServiceUrl(url.href), { method: "GET", integrity });
      if (!response.ok) await readResponseBody(response, url);
      return response.text();
    },
    getToken: () => token,
    onUnauthorized(renewal) {
      renew = renewal;
    },
  };
}
