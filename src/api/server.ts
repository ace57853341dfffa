/** The HTTP server of the service: REST, GraphQL with its websocket, pages and health checks at one port. */
import { createServer, type RequestListener } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { GraphQLSchema } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES, SESSION_LIFETIME_MS } from "../limits.js";
import type { Credentials } from "../operations/access/credentials.js";
import type { RefusalDelay } from "../operations/access/refusal-delay.js";
import type { RequestLimiter } from "../operations/access/request-limiter.js";
import type { ToolCalls } from "../operations/access/tool-calls.js";
import type { OpenId } from "../operations/accounts/open-id.js";
import type { PageSessions } from "../operations/client/page-sessions.js";
import type { DeliveryReports } from "../operations/communicate/delivery-reports.js";
import type { GitWebhooks } from "../operations/git/git-webhooks.js";
import type { HttpTriggers } from "../operations/http/http-triggers.js";
import type { OAuthServer } from "../operations/oauth/oauth.js";
import type { StoredScripts } from "../operations/packages/kept-scripts.js";
import type { ServiceMeasures } from "../operations/watch/measures.js";
import type { RequestTracing } from "../operations/watch/tracing.js";
import type { AddressOf } from "./address.js";
import { callWhenResponseEnds, responseEndSignal } from "./answer-end.js";
import type { Answers } from "./answers.js";
import { registerAppPages } from "./app-pages.js";
import { registerAppTypes } from "./app-types-route.js";
import { registerBodies } from "./bodies.js";
import type { BodyCapacities } from "./body-capacity.js";
import type { CallerReader } from "./caller.js";
import { registerClientScripts } from "./client-scripts.js";
import { quotaHeaders, type RequestContext, readIdempotencyKey, readIdempotencyRetry } from "./context.js";
import { registerCors } from "./cors.js";
import { registerDeliveryReports } from "./delivery-reports.js";
import { registerDocs } from "./docs/routes.js";
import { registerEntryFiles } from "./entry-files.js";
import { registerEnvScript } from "./env-script-route.js";
import { errorReply } from "./error-reply.js";
import { registerFirstPage } from "./first-page.js";
import { registerGitWebhook } from "./git-webhook.js";
import { createDocuments, type Documents } from "./graphql/documents.js";
import { createSchema, type Resolvers } from "./graphql/schema.js";
import { registerGraphql } from "./graphql-route.js";
import { registerHttpTriggers } from "./http-triggers.js";
import { registerKeptScripts } from "./kept-scripts.js";
import { registerManifestSchema } from "./manifest-schema-route.js";
import { registerMcp } from "./mcp/routes.js";
import { registerMediaBytes } from "./media-bytes.js";
import { registerOauth } from "./oauth/routes.js";
import { registerOpenIdRoutes } from "./open-id-routes.js";
import { registerOpenapi } from "./openapi-route.js";
import { createPageOrigin, pathBefore } from "./page-origin.js";
import { registerRequestLog } from "./request-log.js";
import { registerRest } from "./rest/register.js";
import { ROUTES } from "./rest/routes.js";
import { addressSender } from "./sender.js";
import { createSessionCookie } from "./session-cookie.js";
import { registerSignIn } from "./sign-in.js";
import { LARGE_CHARACTERS, streamSlices } from "./sliced.js";
import { registerTraces } from "./traces.js";
import type { Turns } from "./turns.js";
import { discardUnreadBody } from "./unread-body.js";
import { registerWebAssets, wantsPage } from "./web-assets.js";

/**
 * Maximum length of a path parameter. No valid request line is that long, so the router never rejects a parameter; the rules report whether
 * it is an ID.
 */
const PARAM_MAX_CHARACTERS = 16_384;

export interface ApiOptions {
  resolvers: Resolvers;
  credentials: Credentials;
  sessions: PageSessions;
  reports: DeliveryReports;
  toolCalls: ToolCalls;
  oauth: OAuthServer;
  scripts: StoredScripts;
  /** The service's address for people and browsers, without a trailing slash. */
  baseUrl: string;
  /** PUBLIC_URL. If null, readers of the docs see the address by which they reach the service. */
  publicUrl: string | null;
  callers: CallerReader;
  openId: OpenId;
  /** Origin of the pages that run authors' code. If null, this is the service's own origin. */
  runtimeUrl: string | null;
  addressOf: AddressOf;
  answers: Answers;
  refusalDelay: RefusalDelay;
  turns: Turns;
  limiter: RequestLimiter;
  rooms: BodyCapacities;
  appExists: (appId: number) => Promise<boolean>;
  measures: Pick<ServiceMeasures, "refused">;
  tracing: RequestTracing;
  /** Which GraphQL documents app users may send. */
  graphqlDocuments: "any" | "persisted";
  httpTriggers: HttpTriggers;
  gitWebhooks: GitWebhooks;
  log: Logger;
}

export interface Api {
  schema: GraphQLSchema;
  documents: Documents;
  /** Every registered route. */
  addresses: readonly { method: string; path: string }[];
  /** Answers one request of the HTTP server. */
  handle: RequestListener;
  stop(): Promise<void>;
}

function createFastify({ measures, log }: ApiOptions): { app: FastifyInstance; handle: RequestListener } {
  let handle: RequestListener = () => undefined;
  const fail = (error: unknown, reply: FastifyReply): FastifyReply => {
    const { http, headers, body } = errorReply(error, log);
    measures.refused(body.status);
    return reply.code(http).headers(headers).send(body);
  };
  const app = Fastify({
    bodyLimit: BODY_MAX_BYTES,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PARAM_MAX_CHARACTERS },
    frameworkErrors(error, _request, reply) {
      fail(error, reply as FastifyReply);
    },
    // This server never listens: health.ts owns the port, and closing the API must not wait for the port's connections.
    serverFactory: (listener) => {
      handle = listener;
      return createServer();
    },
  });
  app.setErrorHandler((error, request, reply) =>
    fail(error, reply.headers(quotaHeaders(request.context ?? { caller: null }))),
  );
  app.setNotFoundHandler((_request, reply) => fail(new ActionError("NOT_FOUND"), reply));
  return { app, handle: (request, response) => handle(request, response) };
}

/**
 * Registers how responses are sent: a large text in slices, a refusal while the rest of its request is dropped, and refusals for missing
 * credentials with a delay.
 */
function registerLeaving(app: FastifyInstance, refusalDelay: RefusalDelay): void {
  app.addHook("onSend", ({ raw, context }, reply, payload, done) => {
    if (reply.statusCode >= 400 || context?.refused === true) {
      discardUnreadBody(raw);
      // Fastify closes the connection after a body that is too large. Here the body is read to its end, so that the connection can serve
      // the next request.
      reply.removeHeader("connection");
    }
    done(null, payload);
  });
  app.addHook("onSend", ({ context }, reply, payload, done) => {
    const destroyResponse = () => {
      reply.raw.destroy();
    };
    const isLarge = typeof payload === "string" && payload.length > LARGE_CHARACTERS;
    const sendPayload = () => done(null, isLarge ? streamSlices([payload], destroyResponse) : payload);
    const refused = reply.statusCode >= 400 || context?.refused === true;
    if (!refused || context?.caller !== null || context.isAnswered) return sendPayload();
    refusalDelay.wait(addressSender(context.address)).then((isAnswered) => {
      if (!isAnswered) destroyResponse();
      sendPayload();
    }, done);
  });
}

/** Builds the API without listening: health.ts passes the requests of the port to `handle`. */
export async function createApi(options: ApiOptions): Promise<Api> {
  const { resolvers, credentials, sessions, reports, scripts, baseUrl, publicUrl, runtimeUrl, addressOf, answers } =
    options;
  const { callers, openId, toolCalls, oauth, refusalDelay, turns, limiter, httpTriggers, measures, tracing } = options;
  const { graphqlDocuments, log } = options;
  const schema = await createSchema(resolvers);
  const documents = createDocuments(schema, turns);
  const { app, handle } = createFastify(options);
  const addresses: { method: string; path: string }[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    for (const methodName of [method].flat()) addresses.push({ method: methodName, path: url });
  });
  const cookie = createSessionCookie(baseUrl);
  registerRequestLog(app, log);
  registerCors(app);
  app.decorateRequest("context");
  app.addHook("onRequest", async (request, reply) => {
    const address = addressOf(request.raw);
    let over: AbortSignal | undefined;
    const disconnectSignal = () => (over ??= responseEndSignal(request.raw, reply.raw));
    const { method, headers, routeOptions } = request;
    const userAgent = headers["user-agent"];
    const browser: NonNullable<RequestContext["browser"]> = {
      origin: callers.ownOrigin(headers),
      ...(userAgent !== undefined && { userAgent }),
      ...(headers.origin !== undefined && { pageOrigin: headers.origin }),
      setSession(session) {
        const value = session ? cookie.set(session.token, SESSION_LIFETIME_MS / 1000) : cookie.clear();
        reply.header("set-cookie", value).header("cache-control", "no-store");
      },
    };
    request.context = {
      caller: null,
      idempotencyKey: null,
      gone: disconnectSignal,
      browser,
      ...(address && { address }),
    };
    const isOwn = routeOptions.config.ownCredentials;
    const token = isOwn ? null : callers.tokenOf({ method, headers, route: routeOptions.url ?? "" });
    const caller = token === null ? null : await credentials.resolve(token, address);
    if (caller !== null) browser.token = token!;
    const answer = answers.open(caller);
    callWhenResponseEnds(request.raw, reply.raw, answer.close);
    Object.assign(request.context, { caller, answer });
    answer.whenEnded(await limiter.acquireSlot(request.context, disconnectSignal));
    if (isOwn) return;
    request.context.idempotencyKey = readIdempotencyKey(request.headers["idempotency-key"]);
    request.context.retryFailed = readIdempotencyRetry(request.headers["idempotency-retry"]);
  });
  registerTraces(app, tracing);
  registerBodies(app, options);
  registerLeaving(app, refusalDelay);
  registerRest(app, ROUTES, options);
  registerEntryFiles(app, resolvers.entries);
  registerMediaBytes(app, resolvers.media);
  registerDeliveryReports(app, { reports, baseUrl });
  registerGitWebhook(app, options.gitWebhooks);
  registerHttpTriggers(app, { triggers: httpTriggers, credentials, publicUrl, runtimeUrl });
  registerEnvScript(app, resolvers.settings, callers);
  const pages = registerWebAssets(app, { base: pathBefore(baseUrl) });
  const origin = createPageOrigin(app, { sessions, baseUrl, runtimeUrl });
  registerKeptScripts(app, scripts);
  registerClientScripts(app, { resolvers, sessions, origin, pages });
  registerAppPages(app, { resolvers, sessions, origin, pages });
  registerSignIn(app, { credentials, sessions, auth: resolvers.auth, cookie });
  registerOpenIdRoutes(app, { openId, baseUrl });
  registerFirstPage(app, baseUrl);
  const docs = registerDocs(app, { pages, baseUrl, publicUrl });
  registerOauth(app, { oauth, pages, addressFor: docs.addressFor, log });
  registerMcp(app, { resolvers, toolCalls, docs, schema, publicUrl, log });
  registerOpenapi(app, schema, baseUrl);
  const studio = ({ context: { caller } }: FastifyRequest, reply: FastifyReply) =>
    pages.send(reply.header("vary", "Cookie"), "studio", caller?.kind === "editor" || caller?.kind === "admin");
  for (const path of ["/studio", "/studio/setup", "/studio/reset", "/studio/invitation"]) app.get(path, studio);
  // Studio shows a page with a link back.
  app.get("/studio/*", (request, reply) =>
    wantsPage(request) ? studio(request, reply.code(404)) : reply.callNotFound(),
  );
  registerManifestSchema(app, baseUrl);
  registerAppTypes(app, resolvers.manifests);
  const stopGraphql = await registerGraphql(app, {
    schema,
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
    addresses,
    handle,
    async stop() {
      await app.close();
      await stopGraphql();
    },
  };
}
