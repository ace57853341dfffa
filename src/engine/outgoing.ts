/**
 * Sends HTTP requests to other services for an app, with checked addresses, limits and redirect rules. Resolves for every HTTP status, and
 * otherwise rejects with an `OutgoingError`. A hop is one HTTP request: the first one, a redirect or a retry.
 */
import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { OUTGOING_REQUEST_REDIRECTS_MAX, OUTGOING_RESPONSE_BODY_MAX_BYTES } from "../limits.js";
import type { RunRequestBudget } from "./outgoing/budget.js";
import { ConnectionPools, type OpenConnection } from "./outgoing/connection-pools.js";
import { ACCEPT_ENCODING, readDecodedBody } from "./outgoing/decoding.js";
import { getTransportErrorCode, OutgoingError } from "./outgoing/failure.js";

export { RunRequestBudget } from "./outgoing/budget.js";
export type { OpenConnection } from "./outgoing/connection-pools.js";
export { OutgoingError, type OutgoingErrorCode } from "./outgoing/failure.js";

/** HTTP headers by name in lower case. */
type HeaderMap = Readonly<Record<string, string>>;

export interface OutgoingRequest {
  /** URL with the scheme http or https, with its host in normal form, without credentials and fragment. */
  url: URL;
  method: string;
  headers: HeaderMap;
  body: Uint8Array | null;
  /** Time limit of the whole call in milliseconds, including redirects and retries. Waiting for a slot of `budget` does not count. */
  timeoutMs: number;
  /** Called with each decoded part of the body, one after the other, if the status is from 200 to 299. */
  onPart?: ((chunk: Buffer) => Promise<void>) | undefined;
  /** Repeats the request for the HTTP statuses in `on`. `attempts` is the maximum number of requests in total. */
  retry?: { attempts: number; on: readonly number[] } | undefined;
}

export interface OutgoingHop {
  url: URL;
  method: string;
  headers: HeaderMap;
  body: Uint8Array | null;
}

/** A hop (first request, redirect or retry) that has ended. Contains the origin, but no path, header or body. */
export interface OutgoingHopSummary {
  origin: string;
  method: string;
  /** HTTP status; null without a response. */
  status: number | null;
  durationMs: number;
  sentBytes: number;
  receivedBytes: number;
  code: string | null;
}

export interface OutgoingRequestContext {
  /** Key of the connection pool. Two requests share a connection only if they have the same key. */
  pool: string;
  budget: RunRequestBudget;
  mayUseOrigin(origin: string): boolean;
  /** Returns the normal form of a URL's origin; null if its host name is invalid. */
  originOf(url: URL): string | null;
  /**
   * Called with each redirect target before it is followed. `signal` also aborts at the request's time limit.
   * @throws OutgoingError POLICY
   */
  checkRedirect?(url: URL, signal: AbortSignal): Promise<void>;
  /**
   * Adds the credential to a hop. Called for each hop to the origin of the first request, including retries. `signal` also aborts at the
   * request's time limit.
   */
  authorize?(hop: OutgoingHop, signal: AbortSignal): Promise<OutgoingHop>;
  /** True if the request has a credential. The request is then not redirected to another origin. */
  hasCredential: boolean;
  signal: AbortSignal;
  /** Called when a hop begins. Returns a function, which is called when the hop has ended. */
  onHop?(origin: string, method: string): (summary: OutgoingHopSummary) => void;
}

export interface OutgoingResponse {
  status: number;
  /** Response headers by name in lower case. Repeated headers are joined by ", ". Set-Cookie is left out. */
  headers: Record<string, string>;
  body: Buffer;
  /** Origin that sent the response. After redirects, this is the origin of the last request. */
  origin: string;
}

const REDIRECT_STATUSES: readonly number[] = [301, 302, 303, 307, 308];
const REDIRECTED_METHODS: readonly string[] = ["GET", "HEAD"];
/** Headers that are also sent to another origin after a redirect. */
const CROSS_ORIGIN_HEADERS: readonly string[] = ["accept", "accept-encoding", "accept-language", "range", "user-agent"];
const DROPPED_HEADERS: readonly string[] = ["set-cookie", "set-cookie2"];
const RETRY_MIN_MS = 200;
const RETRY_MAX_MS = 5_000;

const createPolicyError = (message: string, origin: string | null) => new OutgoingError("POLICY", message, origin);

function selectResponseHeaders(responseHeaders: Record<string, string | string[] | undefined>): Record<string, string> {
  const forwardedHeaders = Object.entries(responseHeaders).filter(
    ([name, value]) => value !== undefined && !DROPPED_HEADERS.includes(name),
  );
  return Object.fromEntries(
    forwardedHeaders.map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value!]),
  );
}

/** Returns the text of a header in UTF-8, such as a redirect to `/café`. Headers arrive as Latin-1, one character for each byte. */
function decodeUtf8Header(text: string): string {
  const bytes = Buffer.from(text, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : text;
}

/**
 * Returns the delay before a retry: the server's Retry-After if it is in seconds. Otherwise, the delay is RETRY_MIN_MS for the first retry,
 * and doubles with each further one. The maximum is RETRY_MAX_MS in both cases.
 */
function computeRetryDelayMs({ headers }: OutgoingResponse, attempt: number): number {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  const delayMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : RETRY_MIN_MS * 2 ** (attempt - 1);
  return Math.min(delayMs, RETRY_MAX_MS);
}

/** Converts an error of undici or of a socket. Leaves out its message, because the message may quote the request. */
function toOutgoingError(error: unknown, origin: string): OutgoingError {
  if (error instanceof OutgoingError) return error;
  const { forbidden, cause } = error as { forbidden?: boolean; cause?: { forbidden?: boolean } };
  if (forbidden === true || cause?.forbidden === true) {
    const reason = "the host has no public address, or the port is not allowed";
    return createPolicyError(`the request to ${origin} was not sent: ${reason}`, origin);
  }
  const reason = getTransportErrorCode(error);
  if (reason === "UND_ERR_INVALID_ARG")
    return createPolicyError(`the request to ${origin} has an invalid method, header or body`, origin);
  if (reason === "UND_ERR_HEADERS_OVERFLOW") {
    return new OutgoingError("LIMIT", `the headers of the response of ${origin} are too large`, origin);
  }
  return new OutgoingError("TRANSPORT", `the request to ${origin} failed (${reason})`, origin);
}

/**
 * Settles like `promise`, but rejects as soon as the signal aborts. undici does not abort a connection attempt, and `onPart` may be slow.
 */
async function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  // Prevents an unhandled rejection: after an abort, no code awaits the promise.
  promise.catch(() => undefined);
  if (signal.aborted) stop();
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** All requests share this abort reason, because creating an error takes longer than starting the timer. */
const TIMEOUT_REASON = new DOMException("the request exceeded its time limit", "TimeoutError");

/**
 * Returns a signal that aborts with `outerSignal`, or after `timeoutMs`. `clearTimeLimit` removes its timer and listener. A signal of
 * `AbortSignal.timeout` cannot be cleared, and would stay in memory until the timeout.
 */
function createTimeLimit(
  outerSignal: AbortSignal,
  timeoutMs: number,
): { signal: AbortSignal; clearTimeLimit: () => void } {
  const controller = new AbortController();
  const stop = () => controller.abort(outerSignal.reason);
  outerSignal.addEventListener("abort", stop, { once: true });
  const timer = setTimeout(() => controller.abort(TIMEOUT_REASON), timeoutMs);
  const clearTimeLimit = () => {
    clearTimeout(timer);
    outerSignal.removeEventListener("abort", stop);
  };
  if (outerSignal.aborted) stop();
  return { signal: controller.signal, clearTimeLimit };
}

export class OutgoingRequestSender {
  private readonly pools: ConnectionPools;

  constructor(open: OpenConnection) {
    this.pools = new ConnectionPools(open);
  }

  /** Sends a request, with redirects and retries. @throws OutgoingError; after an abort of `context.signal`, the abort reason */
  async send(request: OutgoingRequest, context: OutgoingRequestContext): Promise<OutgoingResponse> {
    const { timeoutMs, retry } = request;
    const releaseSlot = await context.budget.enter(context.signal);
    const { signal, clearTimeLimit } = createTimeLimit(context.signal, timeoutMs);
    try {
      for (let attempt = 1; ; attempt += 1) {
        const response = await this.sendWithRedirects(request, { ...context, signal });
        if (!retry || attempt >= retry.attempts || !retry.on.includes(response.status)) return response;
        await delay(computeRetryDelayMs(response, attempt), undefined, { signal });
      }
    } catch (error) {
      context.signal.throwIfAborted();
      if (signal.reason !== TIMEOUT_REASON) throw error;
      const origin = context.originOf(request.url);
      throw new OutgoingError("TIMEOUT", `the request to ${origin} took longer than ${timeoutMs} ms`, origin);
    } finally {
      clearTimeLimit();
      releaseSlot();
    }
  }

  private async sendWithRedirects(
    request: OutgoingRequest,
    context: OutgoingRequestContext,
  ): Promise<OutgoingResponse> {
    const firstOrigin = this.requireAllowedOrigin(request.url, context);
    let { url, headers } = request;
    for (let redirects = 0; ; redirects += 1) {
      const origin = this.requireAllowedOrigin(url, context);
      const { method, body, onPart } = request;
      const hop: OutgoingHop = { url, method, headers, body };
      const response = await this.sendHop(
        origin,
        context.authorize && origin === firstOrigin ? await context.authorize(hop, context.signal) : hop,
        context,
        onPart,
      );
      const { location } = response.headers;
      if (!REDIRECT_STATUSES.includes(response.status) || location === undefined) return response;
      url = await this.requireAllowedRedirect(request, { from: url, location, redirects, firstOrigin }, context);
      if (context.originOf(url) !== firstOrigin) {
        headers = Object.fromEntries(Object.entries(headers).filter(([name]) => CROSS_ORIGIN_HEADERS.includes(name)));
      }
    }
  }

  /** Returns the normal form of the URL's origin. @throws OutgoingError POLICY if requests to this origin are not allowed */
  private requireAllowedOrigin(url: URL, { mayUseOrigin, originOf }: OutgoingRequestContext): string {
    const origin = originOf(url);
    if (origin === null || url.username !== "" || url.password !== "") {
      throw createPolicyError("the URL must be an https URL without credentials", origin);
    }
    if (mayUseOrigin(origin)) return origin;
    throw createPolicyError(
      `${origin} is not allowed for this action: add it to the action's integrationOrigins`,
      origin,
    );
  }

  /** Returns the URL to which a redirect leads. @throws OutgoingError POLICY if the redirect is not allowed */
  private async requireAllowedRedirect(
    { method }: OutgoingRequest,
    { from, location, redirects, firstOrigin }: { from: URL; location: string; redirects: number; firstOrigin: string },
    context: OutgoingRequestContext,
  ): Promise<URL> {
    const createRedirectError = (reason: string) =>
      createPolicyError(`a redirect of ${firstOrigin} was not followed: ${reason}`, firstOrigin);
    if (!REDIRECTED_METHODS.includes(method)) throw createRedirectError("only GET and HEAD requests follow redirects");
    if (redirects >= OUTGOING_REQUEST_REDIRECTS_MAX)
      throw createRedirectError(`a request follows at most ${OUTGOING_REQUEST_REDIRECTS_MAX} redirects`);
    const nextUrl = URL.parse(decodeUtf8Header(location), from.href);
    const origin = nextUrl && context.originOf(nextUrl);
    if (!nextUrl || !origin || nextUrl.username !== "" || nextUrl.password !== "")
      throw createRedirectError("the redirect must lead to an https URL without credentials");
    if (origin !== firstOrigin && context.hasCredential)
      throw createRedirectError("a request with a credential cannot be redirected to another origin");
    // The message does not name the redirect's target: the other server chose it, so it may contain a secret.
    if (!context.mayUseOrigin(origin))
      throw createRedirectError("the redirect leads to an origin that is not in the action's integrationOrigins");
    nextUrl.hash = "";
    await context.checkRedirect?.(nextUrl, context.signal);
    return nextUrl;
  }

  private async sendHop(
    origin: string,
    hop: OutgoingHop,
    context: OutgoingRequestContext,
    onPart: OutgoingRequest["onPart"],
  ): Promise<OutgoingResponse> {
    const { budget, signal, pool } = context;
    budget.countRequest(origin);
    signal.throwIfAborted();
    const startedAtMs = performance.now();
    const sentBytes = hop.body?.byteLength ?? 0;
    const summary: OutgoingHopSummary = {
      origin,
      method: hop.method,
      status: null,
      durationMs: 0,
      sentBytes,
      receivedBytes: 0,
      code: null,
    };
    const onEnd = context.onHop?.(origin, hop.method);
    try {
      const { pathname, search } = hop.url;
      const responsePromise = this.pools.getPool(pool).request({
        origin,
        path: `${pathname}${search}`,
        method: hop.method as "GET",
        headers: { "accept-encoding": ACCEPT_ENCODING, "user-agent": "svc-app-actions", accept: "*/*", ...hop.headers },
        body: hop.body,
        signal,
      });
      const answer = await rejectOnAbort(responsePromise, signal);
      summary.status = answer.statusCode;
      const headers = selectResponseHeaders(answer.headers);
      const isSuccess = answer.statusCode >= 200 && answer.statusCode <= 299;
      const onDecoded = async (chunk: Buffer) => {
        summary.receivedBytes += chunk.length;
        budget.countBytes(chunk.length, origin);
        if (isSuccess && onPart) await rejectOnAbort(onPart(chunk), signal);
      };
      const decodingOptions = {
        encoding: headers["content-encoding"],
        maxBytes: OUTGOING_RESPONSE_BODY_MAX_BYTES,
        origin,
        onDecoded,
      };
      const body = await readDecodedBody(answer.body as unknown as Readable, decodingOptions, signal);
      return { status: answer.statusCode, headers, body, origin };
    } catch (error) {
      const failure = signal.aborted ? null : toOutgoingError(error, origin);
      summary.code = failure?.code ?? "TIMEOUT";
      throw failure ?? error;
    } finally {
      summary.durationMs = performance.now() - startedAtMs;
      onEnd?.(summary);
    }
  }

  close(): Promise<void> {
    return this.pools.close();
  }
}
