/** Serves the routes of HTTP triggers, `/h/:appId/…`: reads the body as bytes, answers CORS preflights, sends the response. */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import type { Credentials } from "../operations/access/credentials.js";
import type {
  HttpTriggerAddress,
  HttpTriggers,
  MatchedTriggers,
  TriggerRunResponse,
} from "../operations/http/http-triggers.js";
import { createAllowHeader, selectRoute, type TriggerRoute } from "../operations/http/routes.js";
import { TRIGGER_RESPONSE_SECURITY_HEADERS } from "../rules/http/answer.js";
import { DRAFT_PATH_SEGMENT, splitPath } from "../rules/http/path.js";
import { HTTP_METHODS } from "../rules/http/where.js";
import { readBodyBytes } from "./bodies.js";
import { readTokenCookie, readTokenHeader } from "./caller.js";
import { createQuotaHeaders } from "./context.js";
import { createResponseEndSignal } from "./response-end.js";
import { parsePathId } from "./rest/request.js";
import { LARGE_RESPONSE_MIN_CHARACTERS, streamResponseParts } from "./sliced.js";

/** Route of all HTTP triggers. */
export const TRIGGER_ROUTE = "/h/:appId/*";
const PREFLIGHT_CACHE_SECONDS = 600;
/** HTTP method of CORS preflights. The service answers preflights itself, without a run. */
const OPTIONS_METHOD = "OPTIONS";

declare module "fastify" {
  interface FastifyContextConfig {
    /** True if the route's handler checks credentials itself. The service then does not read cookies and tokens before the handler. */
    checksOwnCredentials?: true;
  }
}

export interface HttpTriggerOptions {
  triggers: HttpTriggers;
  credentials: Credentials;
  /** The setting PUBLIC_URL: address that senders use. If null, the address is the `Host` header of the request. */
  publicUrl: string | null;
  /** Origin of the pages that run authors' code; null if they have the service's own origin. */
  runtimeUrl: string | null;
}

/** Returns the path below `/h/:appId/`, and the query string as the client sent it. The URL may be complete (http://host/path). */
function splitUrl(url: string): { path: string; query: string } {
  const queryStart = url.indexOf("?");
  const wholePath = queryStart < 0 ? url : url.slice(0, queryStart);
  const path = /^.*?\/h\/\d+\/(.*)$/s.exec(wholePath)?.[1] ?? "";
  return { path, query: queryStart < 0 ? "" : url.slice(queryStart + 1) };
}

/**
 * Reads the app and the path of a request to a trigger. `isDraft` is true if the path selects the draft.
 * @throws NOT_FOUND for a path that no trigger can have
 */
function readTriggerAddress(request: FastifyRequest): HttpTriggerAddress {
  const appId = parsePathId((request.params as { appId?: string }).appId);
  const segments = splitPath(splitUrl(request.raw.url ?? "").path);
  if (appId === 0 || !segments) throw new ActionError("NOT_FOUND");
  const isDraft = segments.decoded[0] === DRAFT_PATH_SEGMENT;
  const { raw, decoded } = segments;
  return {
    appId,
    isDraft,
    ...(isDraft
      ? { rawSegments: raw.slice(1), decodedSegments: decoded.slice(1) }
      : { rawSegments: raw, decodedSegments: decoded }),
  };
}

/**
 * Returns the token of an editor who calls a draft's trigger. Reads the headers, and the cookie only if a page of the service sent the
 * request.
 */
function readEditorToken(headers: IncomingHttpHeaders): string | null {
  const bearerToken = readTokenHeader(headers);
  return bearerToken === null && headers["sec-fetch-site"] === "same-origin" ? readTokenCookie(headers) : bearerToken;
}

const isPreflight = ({ method, headers }: FastifyRequest): boolean =>
  method === OPTIONS_METHOD && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;

/** Sets the CORS header if the trigger allows the page's origin to read responses. Returns true if it does. */
function setOriginHeaders(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { where: { cors } }: TriggerRoute,
): boolean {
  if (!cors) return false;
  reply.header("vary", "Origin");
  const { origin } = headers;
  if (origin === undefined || !cors.origins.includes(origin)) return false;
  reply
    .header("access-control-allow-origin", origin)
    .header("access-control-expose-headers", "Svc-Run-Id, Svc-Replayed");
  return true;
}

function sendOptionsResponse(request: FastifyRequest, reply: FastifyReply, { routes }: MatchedTriggers): FastifyReply {
  const { headers } = request;
  reply.code(204);
  if (!isPreflight(request)) return reply.header("allow", createAllowHeader(routes)).send();
  const requestedMethod = headers["access-control-request-method"]!;
  const route = selectRoute(routes, requestedMethod);
  if (route && setOriginHeaders(request, reply, route)) {
    const names = headers["access-control-request-headers"];
    reply
      .header("access-control-allow-methods", requestedMethod)
      .header("access-control-max-age", PREFLIGHT_CACHE_SECONDS);
    if (names !== undefined) reply.header("access-control-allow-headers", names);
  }
  return reply.send();
}

function sendTriggerResponse(request: FastifyRequest, reply: FastifyReply, response: TriggerRunResponse): FastifyReply {
  const { status, headers, body, runId, isReplayed } = response;
  // The author's code chose this status, so the service does not delay the response as it delays its own rejections.
  request.context.mayRejectWithoutDelay = true;
  // The CORS headers depend on the origin, so the header `Vary` of the action must not replace `Origin`.
  const varyHeader = headers["vary"] === undefined ? {} : { vary: `${headers["vary"]}, Origin` };
  reply.code(status).headers({ "cache-control": "no-store", ...headers, ...varyHeader, "svc-run-id": String(runId) });
  if (isReplayed) reply.header("svc-replayed", "true");
  if (request.method === "HEAD" && body !== null) return reply.header("content-length", Buffer.byteLength(body)).send();
  if (!Buffer.isBuffer(body) || body.length <= LARGE_RESPONSE_MIN_CHARACTERS) return reply.send(body ?? undefined);
  return reply.header("content-length", body.length).send(streamResponseParts([body], () => reply.raw.destroy()));
}

/**
 * Returns the URLs under which the sender may have called the trigger: from PUBLIC_URL if set, otherwise from the request's `Host` header.
 */
function listPossibleUrls({ raw, headers: { host } }: FastifyRequest, publicUrl: string | null): string[] {
  const path = raw.url ?? "";
  if (publicUrl === null) return host === undefined ? [] : [`https://${host}${path}`, `http://${host}${path}`];
  const { origin, pathname } = new URL(publicUrl);
  // Adds the path of PUBLIC_URL if a proxy has removed it from the request's path.
  return [path.startsWith(`${pathname.replace(/\/$/, "")}/`) ? origin + path : publicUrl + path];
}

/**
 * True if a browser would show the response as a page of the service's own origin although RUNTIME_URL names another origin. False for
 * drafts.
 */
function mustRedirectToRuntime(
  { headers }: FastifyRequest,
  { isDraft }: HttpTriggerAddress,
  runtimeUrl: string | null,
): runtimeUrl is string {
  if (runtimeUrl === null || isDraft || headers.host?.toLowerCase() === new URL(runtimeUrl).host) return false;
  return headers.accept?.includes("text/html") ?? false;
}

const createHeaderReader =
  (headers: IncomingHttpHeaders) =>
  (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === "string" ? value : undefined;
  };

export function registerHttpTriggers(app: FastifyInstance, options: HttpTriggerOptions): void {
  const { triggers, credentials, publicUrl, runtimeUrl } = options;
  const matchedTriggers = new WeakMap<FastifyRequest, MatchedTriggers>();

  /**
   * Finds the trigger and checks access before the body is read.
   * @throws ActionError NOT_FOUND, METHOD_NOT_ALLOWED, UNAUTHORIZED, FORBIDDEN, RATE_LIMIT_EXCEEDED
   */
  async function findAndCheckTrigger(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.headers(TRIGGER_RESPONSE_SECURITY_HEADERS);
    const { context } = request;
    context.mayRejectWithoutDelay = true;
    const address = readTriggerAddress(request);
    triggers.countRequest(context.address, address.appId);
    if (address.isDraft && !isPreflight(request)) {
      const token = readEditorToken(request.headers);
      context.caller = token === null ? null : await credentials.resolve(token, context.address);
      triggers.checkAuthor(context.caller, address.appId);
    }
    const { method } = request;
    const match = await triggers.find(address);
    const { routes } = match;
    // A preflight has no credential, so its response must not show which draft URLs exist.
    const isDraftPreflight = address.isDraft && isPreflight(request);
    if (routes.length === 0 && !isDraftPreflight) throw new ActionError("NOT_FOUND");
    matchedTriggers.set(request, match);
    if (method === OPTIONS_METHOD) return;
    const route = selectRoute(routes, method);
    if (!route) {
      reply.header("allow", createAllowHeader(routes));
      throw new ActionError("METHOD_NOT_ALLOWED");
    }
    setOriginHeaders(request, reply, route);
  }

  async function runTrigger(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const match = matchedTriggers.get(request)!;
    const { address } = match;
    if (request.method === OPTIONS_METHOD) return sendOptionsResponse(request, reply, match);
    if (mustRedirectToRuntime(request, address, runtimeUrl)) {
      const { path, query } = splitUrl(request.raw.url ?? "");
      return reply.redirect(`${runtimeUrl}/h/${address.appId}/${path}${query && `?${query}`}`, 307);
    }
    const { context, method, headers, raw } = request;
    const author = address.isDraft ? context.caller : null;
    const body = (request.body as Buffer<ArrayBuffer> | undefined) ?? Buffer.alloc(0);
    const input = { headers, body, query: splitUrl(raw.url ?? "").query, requestId: randomUUID() };
    const triggerSender = { address: context.address, token: readTokenHeader(headers), appId: address.appId };
    const signedParts = { header: createHeaderReader(headers), urls: listPossibleUrls(request, publicUrl) };
    const disconnectSignal = context.getClosedSignal ?? (() => createResponseEndSignal(raw, reply.raw));
    const triggerRequest = { ...input, ...triggerSender, ...signedParts, method, disconnectSignal };
    try {
      return sendTriggerResponse(request, reply, await triggers.run(match, author, triggerRequest, context));
    } catch (error) {
      if (error instanceof ActionError && error.status === "UNAUTHORIZED") {
        // Lets the service delay this rejection, so that clients cannot guess passwords and tokens quickly.
        delete context.mayRejectWithoutDelay;
        if (selectRoute(match.routes, method)?.where.auth.type === "basic")
          reply.header("www-authenticate", 'Basic realm="action", charset="UTF-8"');
      }
      if (error instanceof ActionError && error.status === "RATE_LIMIT_EXCEEDED")
        reply.headers(createQuotaHeaders(context));
      throw error;
    }
  }

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (request: FastifyRequest, payload: Readable) => readBodyBytes(request, payload));
    scope.route({
      method: [...HTTP_METHODS, OPTIONS_METHOD],
      url: TRIGGER_ROUTE,
      config: { checksOwnCredentials: true, acceptsEncodedBody: true },
      exposeHeadRoute: false,
      onRequest: findAndCheckTrigger,
      handler: runTrigger,
    });
  });
}
