/** Serves GraphQL over HTTP. Checks the caller and the document before Apollo executes the document, and sends the result as JSON text. */
import { ApolloServer } from "@apollo/server";
import { fastifyApolloHandler } from "@as-integrations/fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  type DocumentNode,
  type FormattedExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
} from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../errors.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";
import type { RequestTracing } from "../operations/watch/tracing.js";
import { isObject } from "../rules/describe-value.js";
import { serializeJson } from "../rules/json-text.js";
import { createQuotaHeaders, type RequestContext } from "./context.js";
import { createGraphqlErrorFormatter, type FormatError } from "./error-reply.js";
import type { GraphqlDocumentChecker } from "./graphql/documents.js";
import { findSharedIdempotencyKeyError } from "./graphql/idempotency.js";
import { createIntrospectionResponder, INTROSPECTION_QUERY_MAX_CHARACTERS } from "./graphql/introspection.js";
import { findNotPersistedError, findQueryText } from "./graphql/persisted.js";
import { acceptsGraphqlResponse, createGraphqlErrorSender, sendJsonText } from "./graphql/refusals.js";
import type { ResolverContext, Resolvers } from "./graphql/schema.js";
import { getRequestSenderKey } from "./request-sender.js";
import { runInRequestSpan } from "./traces.js";
import { acceptsHtml, type BuiltPageSender } from "./web-assets.js";

/** Maximum bytes of an anonymous request, which may only contain one of the known introspection queries. */
const ANONYMOUS_REQUEST_MAX_BYTES = 2 * INTROSPECTION_QUERY_MAX_CHARACTERS;

/** Property of a request in which the route stores the GraphQL document that passed the checks. */
const CHECKED_DOCUMENT = Symbol("checked document");

interface GraphqlContext extends RequestContext, ResolverContext {
  [CHECKED_DOCUMENT]?: string;
}

export interface GraphqlOptions {
  schema: GraphQLSchema;
  resolvers: Resolvers;
  documents: GraphqlDocumentChecker;
  pages: BuiltPageSender;
  measures: Pick<ServiceMetrics, "countRefusal">;
  tracing: RequestTracing;
  graphqlDocuments: "any" | "persisted";
  log: Logger;
}

const UNSUPPORTED_METHODS = ["PUT", "DELETE", "PATCH"];

/** Parses a URL parameter as JSON. Returns invalid JSON as text, so that Apollo rejects it. */
function parseJsonParameter(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : text;
  } catch {
    return text;
  }
}

function readRequestParameters({ method, body, query }: FastifyRequest): Record<string, unknown> {
  if (method !== "GET") return isObject(body) ? body : {};
  const urlParameters = query as Record<string, unknown>;
  return { ...urlParameters, variables: parseJsonParameter(urlParameters["variables"]) };
}

const REQUEST_PARAMETERS = ["query", "variables", "operationName", "extensions"];

/** @throws ActionError REQUEST_INVALID if the URL contains one of the GraphQL parameters twice */
function rejectRepeatedParameters({ method, query }: FastifyRequest): void {
  if (method !== "GET") return;
  const repeatedParameter = REQUEST_PARAMETERS.find((name) => Array.isArray((query as Record<string, unknown>)[name]));
  if (repeatedParameter)
    throw new ActionError(
      "REQUEST_INVALID",
      `the query parameter ${repeatedParameter} must occur only once in the URL (got it several times)`,
    );
}

/**
 * Returns an error for a subscription, which needs a websocket; otherwise null.
 * @throws METHOD_NOT_ALLOWED for a mutation with GET
 */
function findMethodError(method: string, document: DocumentNode, operationName: string | null): GraphQLError | null {
  const operation = getOperationAST(document, operationName)?.operation;
  if (operation === "subscription") {
    return new GraphQLError(
      "a GraphQL subscription needs a websocket with the protocol graphql-transport-ws, at the same path (got an HTTP request)",
    );
  }
  if (operation === "mutation" && method === "GET") {
    throw new ActionError("METHOD_NOT_ALLOWED", "a mutation needs POST (got GET)");
  }
  return null;
}

/** Returns the result of an operation. If the JSON text of the result would be too large, returns an error instead. */
function replaceIfTooLarge(
  { responseBudget: budget }: GraphqlContext,
  result: FormattedExecutionResult,
  formatError: FormatError,
): FormattedExecutionResult {
  try {
    budget?.checkResponseSize(result.data);
    return result;
  } catch (error) {
    return { data: null, errors: [formatError(error)] };
  }
}

function createApollo({ schema, documents }: GraphqlOptions, formatError: FormatError): ApolloServer<GraphqlContext> {
  return new ApolloServer<GraphqlContext>({
    schema,
    stopOnTerminationSignals: false,
    introspection: true,
    maxRecursiveSelections: true,
    persistedQueries: false,
    allowBatchedHttpRequests: false,
    includeStacktraceInErrorResponses: false,
    // Apollo's CSRF check is not needed: a GET changes nothing, and `caller.ts` rejects or ignores cookies from other origins.
    csrfPrevention: false,
    formatError: (_formatted, error) => formatError(error),
    stringifyResult: (result) => `${serializeJson(result)}\n`,
    // Gives Apollo the document that passed the checks, by its hash, so that Apollo does not parse or validate it again.
    documentStore: {
      get: async (key) => documents.findCachedDocument(key.slice(key.lastIndexOf(":") + 1)),
      set: async () => undefined,
      delete: async () => undefined,
    },
    plugins: [
      {
        requestDidStart: async () => ({
          async didResolveSource({ source, contextValue }) {
            if (source !== contextValue[CHECKED_DOCUMENT])
              throw new GraphQLError(
                "internal error: the GraphQL document to run differs from the document that the service validated",
              );
          },
          async willSendResponse({ contextValue, response }) {
            const { body } = response;
            if (body.kind === "single")
              body.singleResult = replaceIfTooLarge(contextValue, body.singleResult, formatError);
            for (const [name, value] of Object.entries(createQuotaHeaders(contextValue)))
              response.http.headers.set(name, value);
          },
        }),
      },
    ],
  });
}

/** Registers `/graphql`, which also serves GraphiQL to browsers. Returns a function that stops the Apollo server. */
export async function registerGraphql(app: FastifyInstance, options: GraphqlOptions): Promise<() => Promise<void>> {
  const { schema, resolvers, documents, pages, tracing, graphqlDocuments } = options;
  const formatError = createGraphqlErrorFormatter(options);
  const apollo = createApollo(options, formatError);
  const findIntrospectionResponse = createIntrospectionResponder(schema);
  await apollo.start();
  const executeRequest = fastifyApolloHandler(apollo, {
    context: async ({ context }): Promise<GraphqlContext> => Object.assign(context, { resolvers }),
  });

  const { sendRejection, sendNotAcceptable, sendFailure } = createGraphqlErrorSender(formatError);

  const isAnonymous = (request: FastifyRequest) => request.context.caller === null;

  /** Rejects a request of an anonymous caller before its body is read, if the body may be larger than a known introspection query. */
  async function rejectLargeAnonymousRequest(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const contentLength = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
    if (!isAnonymous(request) || contentLength <= ANONYMOUS_REQUEST_MAX_BYTES) return undefined;
    request.context.isRejected = true;
    return sendRejection(request, reply, [new ActionError("UNAUTHORIZED")]);
  }

  /** Checks the caller and the document. Returns the errors; an empty list if the document may be executed. */
  async function checkRequest(
    { method, context, headers }: FastifyRequest,
    query: string,
    { operationName, variables }: Record<string, unknown>,
  ): Promise<readonly unknown[]> {
    const notPersistedError = findNotPersistedError(query, context.caller, graphqlDocuments);
    if (notPersistedError) return [notPersistedError];
    const name = typeof operationName === "string" ? operationName : null;
    const bytes = method === "GET" ? query.length : Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
    const checkResult = await documents.checkInTurn(getRequestSenderKey(context), bytes, {
      query,
      operationName: name,
      variables: isObject(variables) ? variables : null,
    });
    if (!("kind" in checkResult)) return checkResult;
    const fault =
      findMethodError(method, checkResult, name) ??
      (context.idempotencyKey === null ? null : findSharedIdempotencyKeyError(schema, checkResult, name));
    return fault === null ? [] : [fault];
  }

  async function handleGraphqlRequest(
    this: FastifyInstance,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<unknown> {
    const parameters = readRequestParameters(request);
    const introspectionResponse = findIntrospectionResponse(parameters);
    if (introspectionResponse !== null) return sendJsonText(request, reply, introspectionResponse);
    if (isAnonymous(request)) {
      request.context.isRejected = true;
      return sendRejection(request, reply, [new ActionError("UNAUTHORIZED")]);
    }
    // Apollo checks this header only after it has executed the document.
    if (!acceptsGraphqlResponse(request)) return sendNotAcceptable(request, reply);
    rejectRepeatedParameters(request);
    // Apollo reads the document of a GET from the URL, where this route cannot insert the text of a persisted document.
    const query = findQueryText(request.method === "GET" ? { query: parameters["query"] } : parameters);
    if (query instanceof GraphQLError) return sendFailure(request, reply, query);
    if (query !== null) {
      // Apollo reads the document of a POST from the body.
      parameters["query"] = query;
      const requestErrors = await checkRequest(request, query, parameters);
      if (requestErrors.length > 0) return sendRejection(request, reply, requestErrors);
      (request.context as GraphqlContext)[CHECKED_DOCUMENT] = query;
    }
    return runInRequestSpan(tracing, request.context, () => executeRequest.call(this, request, reply));
  }

  const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const isMethodRejected = error instanceof ActionError && error.status === "METHOD_NOT_ALLOWED";
    if (isMethodRejected) reply.header("Allow", request.method === "GET" ? "POST" : "GET, POST");
    sendFailure(request, reply, error);
  };
  app.get("/graphql", { errorHandler: sendError }, async (request, reply) =>
    acceptsHtml(request) ? pages.sendPage(reply, "graphiql") : handleGraphqlRequest.call(app, request, reply),
  );
  app.post("/graphql", { errorHandler: sendError, onRequest: rejectLargeAnonymousRequest }, handleGraphqlRequest);
  const rejectMethod = async () => {
    throw new ActionError("METHOD_NOT_ALLOWED");
  };
  app.route({
    method: UNSUPPORTED_METHODS,
    url: "/graphql",
    errorHandler: sendError,
    onRequest: rejectMethod,
    handler: rejectMethod,
  });
  return () => apollo.stop();
}
