/** The one port: REST, GraphQL and its websocket, pages and health behind one HTTP server. Decides nothing of its own. */
import { createServer, type RequestListener } from "node:http";
import { ApolloServer } from "@apollo/server";
import { fastifyApolloHandler } from "@as-integrations/fastify";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { GraphQLError, type GraphQLSchema } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES } from "../limits.js";
import type { Credentials } from "../operations/access/credentials.js";
import type { PageSessions } from "../operations/access/page-sessions.js";
import { registerAppPages } from "./app-pages.js";
import { tokenIn } from "./caller.js";
import { registerClientScripts } from "./client-scripts.js";
import { quotaHeaders, type RequestContext, readIdempotencyKey } from "./context.js";
import { registerCors } from "./cors.js";
import { registerEnvScript } from "./env-script-route.js";
import { errorReply, formatGraphqlError } from "./error-reply.js";
import { gated } from "./gated.js";
import { createSchema, type Resolvers } from "./graphql/schema.js";
import { variablesFault } from "./graphql/variables.js";
import { restRequest } from "./rest/request.js";
import type { Route } from "./rest/route.js";
import { ROUTES } from "./rest/routes.js";
import { registerWebAssets, type WebPages, wantsPage } from "./web-assets.js";

/** Names in one document, aliases included; a hand-written document has some hundreds. */
const DOCUMENT_MAX_TOKENS = 5_000;

/** More than a request's first line may hold: whether a parameter is an id is the rules' to say. */
const PARAM_MAX_CHARACTERS = 16_384;

export interface ApiOptions {
  resolvers: Resolvers;
  credentials: Credentials;
  sessions: PageSessions;
  /** Browsers reach the service by https. */
  secure: boolean;
  log: Logger;
}

export interface Api {
  schema: GraphQLSchema;
  /** Answers one request of the HTTP server. */
  handle: RequestListener;
  stop(): Promise<void>;
}

declare module "fastify" {
  interface FastifyRequest {
    context: RequestContext;
  }
}

/** JSON of any shape, and nothing for an empty body; prototype keys stay data and are judged by the rules. */
function parseBody(_request: FastifyRequest, body: string, done: (error: Error | null, value?: unknown) => void): void {
  try {
    done(null, body === "" ? undefined : JSON.parse(body));
  } catch {
    done(new ActionError("REQUEST_INVALID", "the body is not valid JSON"));
  }
}

function parseOther(request: FastifyRequest, body: string, done: (error: Error | null, value?: unknown) => void): void {
  const type = request.headers["content-type"] ?? "none";
  if (body === "") done(null, undefined);
  else
    done(
      new ActionError(
        "REQUEST_INVALID",
        `the body must be JSON, with Content-Type: application/json; ${type.slice(0, 60)} came`,
      ),
    );
}

function createFastify(log: Logger): { app: FastifyInstance; handle: RequestListener } {
  let handle: RequestListener = () => undefined;
  const fail = (error: unknown, reply: FastifyReply): FastifyReply => {
    const { http, headers, body } = errorReply(error, log);
    return reply.code(http).headers(headers).send(body);
  };
  const app = Fastify({
    bodyLimit: BODY_MAX_BYTES,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PARAM_MAX_CHARACTERS },
    frameworkErrors: (error, _request, reply) => void fail(error, reply as FastifyReply),
    // A server that never listens: the port is the front door's, and closing the API must not wait for the port's connections.
    serverFactory: (listener) => {
      handle = listener;
      return createServer();
    },
  });
  app.setErrorHandler((error, request, reply) =>
    fail(error, reply.headers(quotaHeaders(request.context ?? { caller: null }))),
  );
  app.setNotFoundHandler((_request, reply) => fail(new ActionError("NOT_FOUND"), reply));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, parseBody);
  app.addContentTypeParser("*", { parseAs: "string" }, parseOther);
  return { app, handle: (request, response) => handle(request, response) };
}

function registerRest(app: FastifyInstance, routes: readonly Route[], resolvers: Resolvers): void {
  for (const { method, path, http = 200, answer } of routes) {
    app.route({
      method,
      url: path,
      onRequest: gated,
      handler: async (request, reply) => {
        const body = await answer(resolvers, restRequest(request, request.context));
        // Depends on who asks, and holds what caches may not keep.
        return reply.code(http).headers(quotaHeaders(request.context)).header("Cache-Control", "no-store").send(body);
      },
    });
  }
}

async function registerGraphql(
  app: FastifyInstance,
  schema: GraphQLSchema,
  pages: WebPages,
  log: Logger,
): Promise<ApolloServer<RequestContext>> {
  const apollo = new ApolloServer<RequestContext>({
    schema,
    stopOnTerminationSignals: false,
    introspection: true,
    maxRecursiveSelections: true,
    parseOptions: { maxTokens: DOCUMENT_MAX_TOKENS },
    allowBatchedHttpRequests: false,
    includeStacktraceInErrorResponses: false,
    formatError: (_formatted, error) => formatGraphqlError(error, log),
    plugins: [
      {
        requestDidStart: async () => ({
          async didResolveOperation({ document, operationName, request }) {
            const fault = variablesFault(schema, document, operationName, request.variables);
            if (fault)
              throw new GraphQLError(fault.message, { nodes: fault.nodes, extensions: { http: { status: 400 } } });
          },
          async willSendResponse({ contextValue, response }) {
            for (const [name, value] of Object.entries(quotaHeaders(contextValue)))
              response.http.headers.set(name, value);
          },
        }),
      },
    ],
  });
  await apollo.start();
  const data = fastifyApolloHandler(apollo, { context: async (request) => request.context });
  app.get("/graphql", (request, reply) =>
    wantsPage(request) ? pages.send(reply, "graphiql") : data.call(app, request, reply),
  );
  app.post("/graphql", data);
  app.get("/studio", (_request, reply) => pages.send(reply, "studio"));
  return apollo;
}

/** Builds the API; it listens nowhere: whoever has a port hands its requests to `handle`. */
export async function createApi({ resolvers, credentials, sessions, secure, log }: ApiOptions): Promise<Api> {
  const schema = await createSchema(resolvers);
  const { app, handle } = createFastify(log);
  registerCors(app);
  app.decorateRequest("context");
  app.addHook("onRequest", async (request) => {
    const token = tokenIn(request.method, request.headers);
    const caller = token === null ? null : await credentials.resolve(token);
    request.context = { caller, address: request.ip, idempotencyKey: null };
    request.context.idempotencyKey = readIdempotencyKey(request.headers["idempotency-key"]);
  });
  registerRest(app, ROUTES, resolvers);
  registerEnvScript(app, resolvers.settings);
  const pages = registerWebAssets(app);
  registerClientScripts(app, resolvers, pages);
  registerAppPages(app, { resolvers, sessions, credentials, pages, secure });
  const apollo = await registerGraphql(app, schema, pages, log);
  await app.ready();
  return {
    schema,
    handle,
    async stop() {
      await app.close();
      await apollo.stop();
    },
  };
}
