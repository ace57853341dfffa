/** The service's URL and the caller: the only holder of the token. */
import { failure, failureFrom } from "./failure.js";
import { linesOf } from "./lines.js";
import type { Configuration, Env } from "./public-types.js";
import { scope } from "./scope.js";
import type { Reply, SendToService } from "./service-way.js";

export interface Connection {
  configure(configuration: Configuration): void;
  /** The configured app's id. @throws SvcError if there is none */
  appId(): number;
  /** A URL of the service. @throws SvcError for one of any other origin */
  address(path: string): URL;
  /** Sends a request to the service and returns the body of its response. @throws SvcError */
  request(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Body>;
  /** Sends to the service and yields each line of its answer when it arrives, parsed. @throws SvcError */
  lines(method: string, path: string, body: unknown): AsyncIterable<unknown>;
  /** The same for bodies that are not JSON: a form to send, bytes to read. The caller reads the response's body. @throws SvcError */
  exchange(method: string, path: string, body?: FormData): Promise<Response>;
  /** Reads a script's source with the token, for pages that have no cookie. @throws SvcError */
  source(url: URL, integrity: string): Promise<string>;
  token(): string | null;
  /** Sets `renew`, which requests another token after a 401; the request is repeated if it resolves to true. */
  onUnauthorized(renew: () => Promise<boolean>): void;
}

export interface RequestOptions {
  /** The request may outlive the page if its body is small enough. */
  keepalive?: boolean;
  headers?: Record<string, string>;
  /** A 401 is final: this request itself asks for a session. */
  once?: boolean;
}

interface TextRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  keepalive?: boolean;
}

/** Browsers limit requests that outlive their page to 64 KB in total. */
const KEEPALIVE_MAX_CHARACTERS = 20_000;

export type Body = Record<string, unknown>;

/** Origin and path, with a trailing slash. */
function apiBase(apiUrl: string): string {
  const url = URL.parse(apiUrl, scope.location?.href);
  const usable = url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
  if (!usable) throw failure("REQUEST_INVALID", "apiUrl must be an http or https address without credentials");
  let path = url.pathname;
  while (path.endsWith("/")) path = path.slice(0, -1);
  return `${url.origin}${path}/`;
}

const noAnswer = (from: string, answered = false) => failure("NETWORK_ERROR", `no answer from ${from}`, { answered });

/** @throws SvcError if the value cannot be JSON */
function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw failure("REQUEST_INVALID", `the argument cannot be written as JSON: ${(error as Error).message}`);
  }
}

/** The service from which a library was loaded. */
const servedBy = (library: string): string => library.split(/[?#]/, 1)[0]!.replace(/\/client\/svc\.m?js$/, "");

async function answer(response: Reply, { origin }: URL): Promise<Body> {
  const text = await response.text().catch(() => {
    throw noAnswer(origin, true);
  });
  let body: unknown = null;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    // Not an error of the service: a proxy's page, for example.
  }
  if (!response.ok || typeof body !== "object" || body === null) {
    const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
    throw failureFrom(Number.isFinite(retryAfter) ? { retryAfter, ...(body ?? {}) } : body, response.status);
  }
  return body as Body;
}

/**
 * @param env read once: a later change of window.ENV cannot send the token elsewhere
 * @param loadedFrom URL of the library, whose origin is the API unless `env` names another
 * @param sendToService used instead of `fetch` for the requests that it supports
 */
export function createConnection(env: Env, loadedFrom?: string, sendToService?: SendToService): Connection {
  const known = env.apiUrl ?? (loadedFrom ? servedBy(loadedFrom) : (scope.location?.origin ?? "null"));
  // A page without a URL, such as about:blank, must be configured before the first call.
  let base = known === "null" ? null : apiBase(known);
  let app = env.appId;
  let token: string | null = env.token ?? null;
  let renew: (() => Promise<boolean>) | null = null;
  // Removed, so that other code that reads or prints the page's ENV does not get it.
  Reflect.deleteProperty(env, "token");

  function address(path: string): URL {
    if (base === null) throw failure("REQUEST_INVALID", "no API: set window.ENV.apiUrl or call Svc.configure");
    const url = new URL(path.replace(/^\/+/, ""), base);
    if (!url.href.startsWith(base))
      throw failure("REQUEST_INVALID", `refusing to call ${url.origin}: the API is ${base}`);
    return url;
  }

  /** A redirect could leak the credential, so none is followed. */
  async function send(url: URL, init: RequestInit): Promise<Response> {
    const headers = token === null ? init.headers : { ...init.headers, "Auth-token": token };
    const credentials = token === null ? "same-origin" : "omit";
    try {
      return await fetch(url, { ...init, headers, credentials, redirect: "error", referrerPolicy: "no-referrer" });
    } catch {
      throw noAnswer(url.origin);
    }
  }

  /** Texts in both directions can use the shorter transport, with only the token. */
  async function ask(url: URL, init: TextRequest): Promise<Reply> {
    const { method, headers, body = null } = init;
    const sent =
      token === null ? null : sendToService?.({ method, url, headers: { ...headers, "Auth-token": token }, body });
    return (
      (await sent?.catch(() => {
        throw noAnswer(url.origin);
      })) ?? send(url, init)
    );
  }

  /** Repeats the request with another token if the first one is rejected: a rejected request has changed nothing. */
  async function authorized<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      const isRefused = (error as { status?: string }).status === "UNAUTHORIZED";
      if (isRefused && (await renew?.())) return call();
      throw error;
    }
  }

  return {
    configure(configuration) {
      const next = configuration.apiUrl === undefined ? base : apiBase(configuration.apiUrl);
      if (next !== base) token = null;
      base = next;
      if (configuration.appId !== undefined) app = configuration.appId;
      if (configuration.token !== undefined) token = configuration.token || null;
    },
    appId() {
      if (app === undefined) throw failure("APP_NOT_FOUND", "no app: set window.ENV.appId or call Svc.configure");
      return app;
    },
    address,
    async request(method, path, body, { keepalive = false, headers = {}, once = false } = {}) {
      const url = address(path);
      const text = body === undefined ? undefined : jsonOf(body);
      const outlivesPage = keepalive && text !== undefined && text.length < KEEPALIVE_MAX_CHARACTERS;
      const ofBody =
        text === undefined
          ? { headers }
          : { body: text, headers: { ...headers, "content-type": "application/json" }, keepalive: outlivesPage };
      const call = async () => answer(await ask(url, { method, ...ofBody }), url);
      return once ? call() : authorized(call);
    },
    async *lines(method, path, body) {
      const url = address(path);
      const init = { method, body: jsonOf(body), headers: { "content-type": "application/json" } };
      const reply = await authorized(async () => {
        const received = await ask(url, init);
        if (!received.ok) await answer(received, url);
        return received;
      });
      try {
        yield* linesOf(reply);
      } catch {
        throw noAnswer(url.origin, true);
      }
    },
    async exchange(method, path, body) {
      const url = address(path);
      return authorized(async () => {
        const response = await send(url, { method, ...(body && { body }) });
        if (!response.ok) await answer(response, url);
        return response;
      });
    },
    async source(url, integrity) {
      const response = await send(address(url.href), { method: "GET", integrity });
      if (!response.ok) await answer(response, url);
      return response.text();
    },
    token: () => token,
    onUnauthorized(renewal) {
      renew = renewal;
    },
  };
}
