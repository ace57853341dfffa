/** The HTTP server of the service: REST, GraphQL over HTTP and websockets, pages and health checks, all at one port. */
import { createServer, type RequestListener } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { GraphQLSchema } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES, PERSON_SESSION_LIFETIME_MAX_MS } from "../limits.js";
import type { Credentials } from "../operations/access/credentials.js";
import type { RejectionDelay } from "../operations/access/rejection-delay.js";
import type { RequestLimiter } from "../operations/access/request-limiter.js";
import type { ToolCallLog } from "../operations/access/tool-calls.js";
import type { OpenId } from "../operations/accounts/open-id.js";
import type { PageSessions } from "../operations/client/page-sessions.js";
import type { DeliveryReports } from "../operations/communicate/delivery-reports.js";
import type { GitWebhooks } from "../operations/git/git-webhooks.js";
import type { HttpTriggers } from "../operations/http/http-triggers.js";
import type { OAuthServer } from "../operations/oauth/oauth.js";
import type { StoredScripts } from "../operations/packages/kept-scripts.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";
import type { RequestTracing } from "../operations/watch/tracing.js";
import type { GetClientAddress } from "./address.js";
import { registerAppPages } from "./app-pages.js";
import { registerAppTypesRoute } from "./app-types-route.js";
import { registerBodyParsing } from "./bodies.js";
import type { CallerReader } from "./caller.js";
import { registerClientScriptRoutes } from "./client-scripts.js";
import { createQuotaHeaders, parseIdempotencyKey, type RequestContext, readIdempotencyRetryHeader } from "./context.js";
import { registerCors } from "./cors.js";
import { registerDeliveryReportRoutes } from "./delivery-reports.js";
import { registerDocs } from "./docs/routes.js";
import { registerEntryImportExportRoutes } from "./entry-files.js";
import { registerEnvScript } from "./env-script-route.js";
import { createErrorReply } from "./error-reply.js";
import type { FairTaskQueue } from "./fair-task-queue.js";
import { registerGitWebhook } from "./git-webhook.js";
import { createGraphqlDocumentChecker, type GraphqlDocumentChecker } from "./graphql/documents.js";
import { loadSchema, type Resolvers } from "./graphql/schema.js";
import { registerGraphql } from "./graphql-route.js";
import { registerHttpTriggers } from "./http-triggers.js";
import { registerManifestSchema } from "./manifest-schema-route.js";
import { registerMcp } from "./mcp/routes.js";
import { registerMediaContentRoutes } from "./media-bytes.js";
import { registerOauth } from "./oauth/routes.js";
import { registerOpenIdRoutes } from "./open-id-routes.js";
import { registerOpenapi } from "./openapi-route.js";
import { getPathPrefix, registerRuntimePageOrigin } from "./page-origin.js";
import type { RequestBodyBudgetsBySize } from "./request-body-budget.js";
import { registerRequestLog } from "./request-log.js";
import { getRequestSenderKeyByAddress } from "./request-sender.js";
import { callWhenResponseEnds, createResponseEndSignal } from "./response-end.js";
import type { ResponseMemoryLimiter } from "./response-memory.js";
import { registerRest } from "./rest/register.js";
import { ROUTES } from "./rest/routes.js";
import { registerRootPage } from "./root-page.js";
import { createSessionCookieHeaders } from "./session-cookie.js";
import { registerTokenSignInRoutes } from "./sign-in.js";
import { LARGE_RESPONSE_MIN_CHARACTERS, streamResponseParts } from "./sliced.js";
import { registerStoredScriptRoutes } from "./stored-script-routes.js";
import { registerTracingHooks } from "./traces.js";
import { discardUnreadBody } from "./unread-body.js";
import { acceptsHtml, registerWebAssets } from "./web-assets.js";

/**
 * Maximum length of a path parameter. No valid request line contains a longer parameter, so the router never rejects one for its length.
 */
const PATH_PARAMETER_MAX_CHARACTERS = 16_384;

export interface ApiOptions {
  resolvers: Resolvers;
  credentials: Credentials;
  sessions: PageSessions;
  reports: DeliveryReports;
  toolCalls: ToolCallLog;
  oauth: OAuthServer;
  scripts: StoredScripts;
  /** The service's address for people and browsers, without a trailing slash. */
  baseUrl: string;
  /** The setting PUBLIC_URL. If null, the documentation shows the address that its reader used. */
  publicUrl: string | null;
  callers: CallerReader;
  openId: OpenId;
  /** The setting RUNTIME_URL: origin of pages that run authors' code. If null, these pages have the service's own origin. */
  runtimeUrl: string | null;
  getClientAddress: GetClientAddress;
  responseMemory: ResponseMemoryLimiter;
  rejectionDelay: RejectionDelay;
  taskQueue: FairTaskQueue;
  limiter: RequestLimiter;
  bodyBudgets: RequestBodyBudgetsBySize;
  appExists: (appId: number) => Promise<boolean>;
  measures: Pick<ServiceMetrics, "countRefusal">;
  tracing: RequestTracing;
  /** GraphQL documents that app users may send: any, or only persisted ones. */
  graphqlDocuments: "any" | "persisted";
  httpTriggers: HttpTriggers;
  gitWebhooks: GitWebhooks;
  log: Logger;
}

export interface Api {
  schema: GraphQLSchema;
  documents: GraphqlDocumentChecker;
  /** Method and path of every registered route. */
  registeredRoutes: readonly { method: string; path: string }[];
  handleRequest: RequestListener;
  stop(): Promise<void>;
}

function createFastify({ measures, log }: ApiOptions): { app: FastifyInstance; handle: RequestListener } {
  let handle: RequestListener = () => undefined;
  const sendErrorReply = (error: unknown, reply: FastifyReply): FastifyReply => {
    const { http, headers, body } = createErrorReply(error, log);
    measures.countRefusal(body.status);
    return reply.code(http).headers(headers).send(body);
  };
  const app = Fastify({
    bodyLimit: BODY_MAX_BYTES,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PATH_PARAMETER_MAX_CHARACTERS },
    frameworkErrors(error, _request, reply) {
      sendErrorReply(error, reply as FastifyReply);
    },
    // This server never listens. The server of port.ts listens, and health.ts passes its requests to `handle`.
    serverFactory: (listener) => {
      handle = listener;
      return createServer();
    },
  });
  app.setErrorHandler((error, request, reply) =>
    sendErrorReply(error, reply.headers(createQuotaHeaders(request.context ?? { caller: null }))),
  );
  app.setNotFoundHandler((_request, reply) => sendErrorReply(new ActionError("NOT_FOUND"), reply));
  return { app, handle: (request, response) => handle(request, response) };
}

/** Registers hooks that send a large text in slices, drop the unread body after an error, and delay rejections of anonymous callers. */
function registerResponseHooks(app: FastifyInstance, rejectionDelay: RejectionDelay): void {
  app.addHook("onSend", ({ raw, context }, reply, payload, done) => {
    if (reply.statusCode >= 400 || context?.isRejected === true) {
      discardUnreadBody(raw, reply.raw);
      // Fastify would close the connection after a body that is too large. The service reads the rest of the body instead.
      reply.removeHeader("connection");
    }
    done(null, payload);
  });
  app.addHook("onSend", ({ context }, reply, payload, done) => {
    const destroyResponse = () => {
      reply.raw.destroy();
    };
    const isLarge = typeof payload === "string" && payload.length > LARGE_RESPONSE_MIN_CHARACTERS;
    const sendPayload = () => done(null, isLarge ? streamResponseParts([payload], destroyResponse) : payload);
    const isRejected = reply.statusCode >= 400 || context?.isRejected === true;
    if (!isRejected || context?.caller !== null || context.mayRejectWithoutDelay) return sendPayload();
    rejectionDelay.wait(getRequestSenderKeyByAddress(context.address)).then((isAnswered) => {
      if (!isAnswered) destroyResponse();
      sendPayload();
    }, done);
  });
}

/** Builds the API. It does not listen at a port: health.ts passes requests to its `handleRequest`. */
export async function createApi(options: ApiOptions): Promise<Api> {
  const {
    resolvers,
    credentials,
    sessions,
    reports,
    scripts,
    baseUrl,
    publicUrl,
    runtimeUrl,
    getClientAddress,
    responseMemory,
  } = options;
  const { callers, openId, toolCalls, oauth, rejectionDelay, taskQueue, limiter, httpTriggers, measures, tracing } =
    options;
  const { graphqlDocuments, log } = options;
  const schema = await loadSchema();
  const documents = createGraphqlDocumentChecker(schema, taskQueue);
  const { app, handle } = createFastify(options);
  const registeredRoutes: { method: string; path: string }[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    for (const methodName of [method].flat()) registeredRoutes.push({ method: methodName, path: url });
  });
  const cookieHeaders = createSessionCookieHeaders(baseUrl);
  registerRequestLog(app, log);
  registerCors(app);
  app.decorateRequest("context");
  app.addHook("onRequest", async (request, reply) => {
    const address = getClientAddress(request.raw);
    let endSignal: AbortSignal | undefined;
    const getClosedSignal = () => (endSignal ??= createResponseEndSignal(request.raw, reply.raw));
    const { method, headers, routeOptions } = request;
    const userAgent = headers["user-agent"];
    const browser: NonNullable<RequestContext["browser"]> = {
      origin: callers.getOwnOrigin(headers),
      ...(userAgent !== undefined && { userAgent }),
      ...(headers.origin !== undefined && { pageOrigin: headers.origin }),
      setSession(session) {
        const value = session
          ? cookieHeaders.createCookieHeader(session.token, PERSON_SESSION_LIFETIME_MAX_MS / 1000)
          : cookieHeaders.createClearingHeader();
        reply.header("set-cookie", value).header("cache-control", "no-store");
      },
    };
    request.context = {
      caller: null,
      idempotencyKey: null,
      getClosedSignal,
      browser,
      ...(address && { address }),
    };
    const checksOwnCredentials = routeOptions.config.checksOwnCredentials;
    const token = checksOwnCredentials ? null : callers.readToken({ method, headers, route: routeOptions.url ?? "" });
    const caller = token === null ? null : await credentials.resolve(token, address);
    if (caller !== null) browser.token = token!;
    const budget = responseMemory.openBudget(caller);
    callWhenResponseEnds(request.raw, reply.raw, budget.close);
    Object.assign(request.context, { caller, responseBudget: budget });
    budget.callWhenEnded(await limiter.acquireSlot(request.context, getClosedSignal));
    if (checksOwnCredentials) return;
    request.context.idempotencyKey = parseIdempotencyKey(headers["idempotency-key"], "the header Idempotency-Key");
    request.context.shouldRetryFailed = readIdempotencyRetryHeader(headers["idempotency-retry"]);
  });
  registerTracingHooks(app, tracing);
  registerBodyParsing(app, options);
  registerResponseHooks(app, rejectionDelay);
  registerRest(app, ROUTES, options);
  registerEntryImportExportRoutes(app, resolvers.entries);
  registerMediaContentRoutes(app, resolvers.media);
  registerDeliveryReportRoutes(app, { reports, baseUrl });
  registerGitWebhook(app, options.gitWebhooks);
  registerHttpTriggers(app, { triggers: httpTriggers, credentials, publicUrl, runtimeUrl });
  registerEnvScript(app, resolvers.settings, callers);
  const pages = registerWebAssets(app, { base: getPathPrefix(baseUrl) });
  const origin = registerRuntimePageOrigin(app, { sessions, baseUrl, runtimeUrl });
  registerStoredScriptRoutes(app, scripts);
  registerClientScriptRoutes(app, { resolvers, sessions, origin, pages });
  registerAppPages(app, { resolvers, sessions, origin, pages });
  registerTokenSignInRoutes(app, { credentials, sessions, auth: resolvers.auth, cookieHeaders });
  registerOpenIdRoutes(app, { openId, baseUrl });
  registerRootPage(app, baseUrl);
  const docs = registerDocs(app, { pages, baseUrl, publicUrl });
  registerOauth(app, { oauth, pages, baseUrl, findServiceAddress: docs.findServiceAddress, log });
  registerMcp(app, { resolvers, toolCalls, docs, schema, publicUrl, log });
  registerOpenapi(app, schema, baseUrl);
  const sendStudio = ({ context: { caller } }: FastifyRequest, reply: FastifyReply) =>
    pages.sendPage(reply.header("vary", "Cookie"), "studio", caller?.kind === "editor" || caller?.kind === "admin");
  for (const path of ["/studio", "/studio/setup", "/studio/reset", "/studio/invitation"]) app.get(path, sendStudio);
  // No other page exists below /studio/. Studio shows an error with a link to its start page.
  app.get("/studio/*", (request, reply) =>
    acceptsHtml(request) ? sendStudio(request, reply.code(404)) : reply.callNotFound(),
  );
  registerManifestSchema(app, baseUrl);
  registerAppTypesRoute(app, resolvers.manifests);
  const stopGraphql = await registerGraphql(app, {
    schema,
    resolvers,
    documents,
    pages,
    measures,
    tracing,
    graphqlDocuments,
    log,
  });
  await app.ready();
  return {
    schema,
    documents,
    registeredRoutes,
    handleRequest: handle,
    async stop() {
      await app.close();
      await stopGraphql();
    },
  };
}
