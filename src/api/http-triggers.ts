/**
 * Serves the routes of HTTP triggers, `/h/:appId/…`: reads the body as bytes, answers preflights, writes the response. Access is checked
 * elsewhere.
 */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import type { Credentials } from "../operations/access/credentials.js";
import type {
  HttpTriggers,
  MatchedTriggers,
  TriggerAddress,
  TriggerRequest,
  TriggerResponse,
} from "../operations/http/http-triggers.js";
import { allowHeaderOf, routeFor, type TriggerRoute } from "../operations/http/routes.js";
import { RoutesChangedError } from "../operations/runs/matching-routes.js";
import { SECURITY_HEADERS } from "../rules/http/answer.js";
import { DRAFT_SEGMENT, splitPath } from "../rules/http/path.js";
import { HTTP_METHODS } from "../rules/http/where.js";
import { responseEndSignal } from "./answer-end.js";
import { readBytes } from "./bodies.js";
import { cookieToken, headerToken } from "./caller.js";
import { quotaHeaders } from "./context.js";
import { toId } from "./rest/request.js";
import { LARGE_CHARACTERS, streamSlices } from "./sliced.js";

/** Route of all HTTP triggers. */
export const TRIGGER_ADDRESS = "/h/:appId/*";
const PREFLIGHT_SECONDS = 600;
/** HTTP method of CORS preflights. The service answers preflights itself, without a run. */
const OPTIONS_METHOD = "OPTIONS";

declare module "fastify" {
  interface FastifyContextConfig {
    /** True if the route checks credentials itself. Cookies and tokens are not resolved before it runs. */
    ownCredentials?: true;
  }
}

export interface HttpTriggerOptions {
  triggers: HttpTriggers;
  credentials: Credentials;
  /** PUBLIC_URL. If null, the address that senders use is unknown. */
  publicUrl: string | null;
  /** Origin of pages that run authors' code. If null, this is the service's own origin. */
  runtimeUrl: string | null;
}

/** Returns the path below `/h/:appId/` and the query, as sent. A path prefix may precede `/h/`. */
function splitUrl(url: string): { path: string; query: string } {
  const queryStart = url.indexOf("?");
  const wholePath = queryStart < 0 ? url : url.slice(0, queryStart);
  const path = /^.*?\/h\/\d+\/(.*)$/s.exec(wholePath)?.[1] ?? "";
  return { path, query: queryStart < 0 ? "" : url.slice(queryStart + 1) };
}

/** @throws NOT_FOUND for a path that no trigger can have */
function addressOf(request: FastifyRequest): TriggerAddress {
  const appId = toId((request.params as { appId?: string }).appId);
  const segments = splitPath(splitUrl(request.raw.url ?? "").path);
  if (appId === 0 || !segments) throw new ActionError("NOT_FOUND");
  const isDraft = segments.decoded[0] === DRAFT_SEGMENT;
  const { raw, decoded } = segments;
  return {
    appId,
    isDraft,
    ...(isDraft
      ? { rawSegments: raw.slice(1), decodedSegments: decoded.slice(1) }
      : { rawSegments: raw, decodedSegments: decoded }),
  };
}

/** Returns the token of an editor who calls a draft: from a header, or from the cookie if the request comes from the service's own page. */
function draftToken(headers: IncomingHttpHeaders): string | null {
  const bearerToken = headerToken(headers);
  return bearerToken === null && headers["sec-fetch-site"] === "same-origin" ? cookieToken(headers) : bearerToken;
}

const isPreflight = ({ method, headers }: FastifyRequest): boolean =>
  method === OPTIONS_METHOD && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;

/** Allows pages of the trigger's origins to read the response. */
function allowOrigin({ headers }: FastifyRequest, reply: FastifyReply, { where: { cors } }: TriggerRoute): boolean {
  if (!cors) return false;
  reply.header("vary", "Origin");
  const { origin } = headers;
  if (origin === undefined || !cors.origins.includes(origin)) return false;
  reply
    .header("access-control-allow-origin", origin)
    .header("access-control-expose-headers", "Svc-Run-Id, Svc-Replayed");
  return true;
}

function answerOptions(request: FastifyRequest, reply: FastifyReply, { routes }: MatchedTriggers): FastifyReply {
  const { headers } = request;
  reply.code(204);
  if (!isPreflight(request)) return reply.header("allow", allowHeaderOf(routes)).send();
  const requestedMethod = headers["access-control-request-method"]!;
  const route = routeFor(routes, requestedMethod);
  if (route && allowOrigin(request, reply, route)) {
    const names = headers["access-control-request-headers"];
    reply.header("access-control-allow-methods", requestedMethod).header("access-control-max-age", PREFLIGHT_SECONDS);
    if (names !== undefined) reply.header("access-control-allow-headers", names);
  }
  return reply.send();
}

function sendAnswer(request: FastifyRequest, reply: FastifyReply, answer: TriggerResponse): FastifyReply {
  const { status, headers, body, runId, isReplayed } = answer;
  // A response of the author's code is not a refusal by the service.
  request.context.isAnswered = true;
  reply.code(status).headers({ "cache-control": "no-store", ...headers, "svc-run-id": String(runId) });
  if (isReplayed) reply.header("svc-replayed", "true");
  if (request.method === "HEAD" && body !== null) return reply.header("content-length", Buffer.byteLength(body)).send();
  if (!Buffer.isBuffer(body) || body.length <= LARGE_CHARACTERS) return reply.send(body ?? undefined);
  return reply.header("content-length", body.length).send(streamSlices([body], () => reply.raw.destroy()));
}

/** Returns the URLs that the sender of the request may have used, by PUBLIC_URL if set, otherwise by the host that the request names. */
function urlsOf({ raw, headers: { host } }: FastifyRequest, publicUrl: string | null): string[] {
  const path = raw.url ?? "";
  if (publicUrl === null) return host === undefined ? [] : [`https://${host}${path}`, `http://${host}${path}`];
  const { origin, pathname } = new URL(publicUrl);
  // A proxy may have removed the prefix.
  return [path.startsWith(`${pathname.replace(/\/$/, "")}/`) ? origin + path : publicUrl + path];
}

/**
 * True if a browser would show the response on the service's own origin although RUNTIME_URL gives author pages another one. The request is
 * then redirected.
 */
function mustRedirectToRuntime(
  { headers }: FastifyRequest,
  { isDraft }: TriggerAddress,
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
  const foundTriggers = new WeakMap<FastifyRequest, MatchedTriggers>();

  /** Finds the trigger, before the body is read. @throws ActionError NOT_FOUND, METHOD_NOT_ALLOWED, UNAUTHORIZED, FORBIDDEN */
  async function findTrigger(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.headers(SECURITY_HEADERS);
    const { context } = request;
    context.isAnswered = true;
    const address = addressOf(request);
    triggers.countAddress(context.address, address.appId);
    if (address.isDraft && !isPreflight(request)) {
      const token = draftToken(request.headers);
      context.caller = token === null ? null : await credentials.resolve(token, context.address);
      triggers.checkAuthor(context.caller, address.appId);
    }
    // Only requests that start a run need current routes. For other requests, cached routes are sufficient.
    const runsAction = request.method !== OPTIONS_METHOD && !mustRedirectToRuntime(request, address, runtimeUrl);
    const cached = runsAction ? triggers.findCached(address, request.method) : null;
    if (cached) foundTriggers.set(request, cached);
    else await findRoutes(request, reply, address);
  }

  /** @throws ActionError NOT_FOUND, METHOD_NOT_ALLOWED */
  async function findRoutes(
    request: FastifyRequest,
    reply: FastifyReply,
    address: TriggerAddress,
  ): Promise<MatchedTriggers> {
    const { method } = request;
    const found = await triggers.find(address);
    const { routes } = found;
    if (routes.length === 0) throw new ActionError("NOT_FOUND");
    foundTriggers.set(request, found);
    if (method === OPTIONS_METHOD) return found;
    const route = routeFor(routes, method);
    if (route) {
      allowOrigin(request, reply, route);
      return found;
    }
    reply.header("allow", allowHeaderOf(routes));
    throw new ActionError("METHOD_NOT_ALLOWED");
  }

  async function answerTrigger(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    let found = foundTriggers.get(request)!;
    const { address } = found;
    if (request.method === OPTIONS_METHOD) return answerOptions(request, reply, found);
    if (mustRedirectToRuntime(request, address, runtimeUrl)) {
      const { path, query } = splitUrl(request.raw.url ?? "");
      return reply.redirect(`${runtimeUrl}/h/${address.appId}/${path}${query && `?${query}`}`, 307);
    }
    const { context, method, headers, raw } = request;
    const author = address.isDraft ? context.caller : null;
    const body = (request.body as Buffer<ArrayBuffer> | undefined) ?? Buffer.alloc(0);
    const input = { headers, body, query: splitUrl(raw.url ?? "").query, requestId: randomUUID() };
    const triggerSender = { address: context.address, token: headerToken(headers), appId: address.appId };
    const signedParts = { header: createHeaderReader(headers), urls: urlsOf(request, publicUrl) };
    const disconnectSignal = context.gone ?? (() => responseEndSignal(raw, reply.raw));
    const countedLimits: TriggerRequest["countedLimits"] = new Set();
    const triggerRequest = { ...input, ...triggerSender, ...signedParts, method, disconnectSignal, countedLimits };
    try {
      for (;;) {
        try {
          return sendAnswer(request, reply, await triggers.run(found, author, triggerRequest, context));
        } catch (error) {
          if (!(error instanceof RoutesChangedError)) throw error;
          found = await findRoutes(request, reply, address);
        }
      }
    } catch (error) {
      if (error instanceof ActionError && error.status === "UNAUTHORIZED") {
        // Refusals are delayed here, because passwords and tokens could be guessed.
        delete context.isAnswered;
        if (routeFor(found.routes, method)?.where.auth.type === "basic")
          reply.header("www-authenticate", 'Basic realm="action", charset="UTF-8"');
      }
      if (error instanceof ActionError && error.status === "RATE_LIMIT_EXCEEDED") reply.headers(quotaHeaders(context));
      throw error;
    }
  }

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (request: FastifyRequest, payload: Readable) => readBytes(request, payload));
    scope.route({
      method: [...HTTP_METHODS, OPTIONS_METHOD],
      url: TRIGGER_ADDRESS,
      config: { ownCredentials: true },
      exposeHeadRoute: false,
      onRequest: findTrigger,
      handler: answerTrigger,
    });
  });
}
