/** HTTP client of the command line `svc`: sends a request to the service's API, and returns the response or throws the error. */
import { setTimeout as delay } from "node:timers/promises";
import { describeValue, isObject } from "../../rules/describe-value.js";
import type { ProcessEnvironment, SavedToken, ServerAndApp, TokenStore } from "./config.js";
import { CliError, ConnectionError, createUsageError, EXIT_CODES } from "./failure.js";

const REQUEST_TIMEOUT_MS = 130_000;
/** Milliseconds before a token's expiry at which the client renews the token. */
const RENEW_BEFORE_MS = 30_000;
/** Maximum total seconds of the waits before retries of one request. Responses with 429 or 503 and Retry-After are retried. */
const RETRY_WAIT_MAX_SECONDS = 60;

export interface CliApiRequestOptions {
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  /** Token to send with this request. If absent, the client sends the token of SVC_TOKEN or of the saved sign-in. */
  token?: string;
  isAnonymous?: boolean;
  /** True if the response is text. All other responses must be JSON. */
  isText?: boolean;
}

export interface CliApiResponse {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the type of a response body depends on the route
  body: any;
}

interface FetchInput {
  body?: string | URLSearchParams;
  headers?: Record<string, string>;
}

export class ServiceResponseError extends CliError {
  readonly http: number;
  readonly status: string;

  /** @param responseBody parsed JSON, or the text of a response that is not JSON, such as the error page of a proxy */
  constructor(http: number, responseBody: unknown) {
    const body = isObject(responseBody) ? responseBody : {};
    const status = typeof body["status"] === "string" ? body["status"] : `HTTP_${http}`;
    const message =
      typeof body["error"] === "string"
        ? body["error"]
        : `the server returned the HTTP status ${http} without an error message`;
    super(`${status}: ${message}`, EXIT_CODES.failed, body);
    this.http = http;
    this.status = status;
  }
}

const parseJsonOrText = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Rejects a response that is not from the service, such as the sign-in page of a proxy. A pull would take it for an empty app. */
function requireJsonBody(origin: string, { status, headers, body }: CliApiResponse): void {
  if (typeof body === "object" && body !== null) return;
  const contentType = describeValue(headers.get("content-type") ?? undefined);
  throw new ConnectionError(
    `${origin} did not return JSON with the HTTP status ${status} (got the content type ${contentType}); check the address of the service, and a proxy before it`,
  );
}

const needsRenewal = ({ expiresAt, refreshToken }: SavedToken): boolean =>
  refreshToken !== undefined && expiresAt !== undefined && expiresAt < Date.now() + RENEW_BEFORE_MS;

export class CliApiClient {
  readonly target: ServerAndApp;
  readonly #env: ProcessEnvironment;
  readonly #store: TokenStore;

  constructor(target: ServerAndApp, env: ProcessEnvironment, store: TokenStore) {
    this.target = target;
    this.#env = env;
    this.#store = store;
  }

  /** Returns SVC_TOKEN or the token of the saved sign-in, renewed if it expires soon. @throws CliError if there is neither */
  async readToken(): Promise<string> {
    const envToken = this.#env["SVC_TOKEN"]?.trim() ?? "";
    // Does not quote the value, because it can contain a token.
    if (!/^[\x21-\x7e]*$/.test(envToken))
      throw createUsageError("SVC_TOKEN must be one token (got a text with spaces, line breaks or other characters)");
    if (envToken !== "") return envToken;
    const savedToken = this.#readSavedToken();
    if (!needsRenewal(savedToken)) return savedToken.token;
    // The service ends a sign-in if a refresh token is used twice. So only one request at a time renews the token. The other requests wait
    // and then use the renewed token.
    return this.#store.lockForRenewal(async () => {
      const currentToken = this.#readSavedToken();
      return needsRenewal(currentToken) ? this.#renew(currentToken) : currentToken.token;
    });
  }

  #readSavedToken(): SavedToken {
    const savedToken = this.#store.get(this.target);
    if (!savedToken) throw new CliError("not signed in; run svc login, or set SVC_TOKEN");
    return savedToken;
  }

  async #renew({ refreshToken = "", clientId = "" }: SavedToken): Promise<string> {
    const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId });
    const { status, body } = await this.sendWithoutToken("POST", "/oauth/token", form);
    if (status === 400 || status === 401) throw new CliError("the session has expired; run svc login");
    if (status !== 200) throw new ServiceResponseError(status, body);
    this.#store.set(this.target, toSavedToken(body, clientId));
    return body.access_token;
  }

  async #send(method: string, address: string, { body, headers = {} }: FetchInput): Promise<CliApiResponse> {
    let response: Response | null = null;
    try {
      response = await fetch(address, {
        method,
        headers,
        ...(body !== undefined && { body }),
        redirect: "error",
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      return { status: response.status, headers: response.headers, body: parseJsonOrText(await response.text()) };
    } catch (error) {
      const { cause, message } = error as Error;
      throw new ConnectionError(
        `${new URL(address).origin} did not return a ${response ? "complete " : ""}response: ${cause instanceof Error ? cause.message : message}`,
      );
    }
  }

  /** Sends a request. After a response 429 or 503 with Retry-After, waits at most RETRY_WAIT_MAX_SECONDS in total and repeats it. */
  async #sendWithRetries(method: string, address: string, request: FetchInput): Promise<CliApiResponse> {
    for (let waitedSeconds = 0; ; ) {
      const response = await this.#send(method, address, request);
      const retryAfterSeconds = Number(response.headers.get("retry-after"));
      if (
        ![429, 503].includes(response.status) ||
        !(retryAfterSeconds > 0) ||
        waitedSeconds + retryAfterSeconds > RETRY_WAIT_MAX_SECONDS
      )
        return response;
      await delay(retryAfterSeconds * 1000);
      waitedSeconds += retryAfterSeconds;
    }
  }

  /** Sends a form. Returns also error responses. @throws ConnectionError if there is no response, or a successful one is not JSON */
  async sendWithoutToken(method: string, path: string, form: URLSearchParams): Promise<CliApiResponse> {
    const response = await this.#send(method, this.target.url + path, { body: form });
    if (response.status < 400) requireJsonBody(new URL(this.target.url).origin, response);
    return response;
  }

  /** Sends a request with a token. In `path`, `:app` stands for the app's ID. @throws ServiceResponseError for an error response */
  async sendRequest(method: string, path: string, request: CliApiRequestOptions = {}): Promise<CliApiResponse> {
    const { query = {}, body, headers = {}, isAnonymous = false } = request;
    const token = isAnonymous ? null : (request.token ?? (await this.readToken()));
    const address = new URL(this.target.url + path.replace(":app", String(this.target.app)));
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    const response = await this.#sendWithRetries(method, address.href, {
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (response.status >= 400) throw new ServiceResponseError(response.status, response.body);
    if (request.isText !== true) requireJsonBody(address.origin, response);
    return response;
  }
}

export const toSavedToken = (
  body: { access_token: string; refresh_token?: string; expires_in?: number },
  clientId: string,
): SavedToken => ({
  token: body.access_token,
  clientId,
  ...(body.refresh_token !== undefined && { refreshToken: body.refresh_token }),
  ...(body.expires_in !== undefined && { expiresAt: Date.now() + body.expires_in * 1000 }),
});
