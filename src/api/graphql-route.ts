/** GraphQL over HTTP: who may be read at all, the documents' check before Apollo executes, answers as text. Knows no operation. */
import { ApolloServer } from "@apollo/server";
import { fastifyApolloHandler } from "@as-integrations/fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type FormattedExecutionResult, GraphQLError, type GraphQLSchema } from "graphql";
import type { Logger } from "pino";
import { ActionError, STATUS } from "../errors.js";
import type { Measures } from "../operations/watch/measures.js";
import type { Tracing } from "../operations/watch/tracing.js";
import { isObject } from "../rules/described.js";
import { writeJson } from "../rules/json-text.js";
import { quotaHeaders, type RequestContext } from "./context.js";
import { type FormatError, formatterOf } from "./error-reply.js";
import type { Documents } from "./graphql/documents.js";
import { createKnownAnswers, QUESTION_MAX_CHARACTERS } from "./graphql/introspection.js";
import { refusalOf, textOf } from "./graphql/persisted.js";
import { senderOf } from "./sender.js";
import { traced } from "./traces.js";
import { type WebPages, wantsPage } from "./web-assets.js";

/** A known question with what stands around it in a request. */
const ANONYMOUS_MAX_BYTES = 2 * QUESTION_MAX_CHARACTERS;

/** As GraphQL tells every refusal: the status stands in the error, and browsers do not report a fault of the network. */
const GRAPHQL_REFUSED = 200;

/** The document whose check the request has passed. */
const CHECKED = Symbol("checked document");

interface Context extends RequestContext {
  [CHECKED]?: string;
}

export interface GraphqlOptions {
  schema: GraphQLSchema;
  documents: Documents;
  pages: WebPages;
  measures: Pick<Measures, "refused">;
  tracing: Tracing;
  graphqlDocuments: "any" | "persisted";
  log: Logger;
}

/** What a request asks, wherever it says so; Apollo says what is wrong with a request that asks nothing. */
function askedIn({ method, body, query }: FastifyRequest): Record<string, unknown> {
  const asked: unknown = method === "GET" ? query : body;
  return isObject(asked) ? asked : {};
}

/** The result, or the refusal in its place where it would be written too large. */
function fitting({ answer }: Context, result: FormattedExecutionResult, format: FormatError): FormattedExecutionResult {
  try {
    answer?.whole(result.data);
    return result;
  } catch (error) {
    return { data: null, errors: [format(error)] };
  }
}

function createApollo({ schema, documents }: GraphqlOptions, format: FormatError): ApolloServer<Context> {
  return new ApolloServer<Context>({
    schema,
    stopOnTerminationSignals: false,
    introspection: true,
    maxRecursiveSelections: true,
    persistedQueries: false,
    allowBatchedHttpRequests: false,
    includeStacktraceInErrorResponses: false,
    formatError: (_formatted, error) => format(error),
    stringifyResult: (result) => `${writeJson(result)}\n`,
    // Its keys end in the hash of the text. What has passed the check is neither parsed nor validated again.
    documentStore: {
      get: async (key) => documents.remembered(key.slice(key.lastIndexOf(":") + 1)),
      set: async () => undefined,
      delete: async () => undefined,
    },
    plugins: [
      {
        requestDidStart: async () => ({
          async didResolveSource({ source, contextValue }) {
            if (source !== contextValue[CHECKED]) throw new GraphQLError("the document was not checked");
          },
          async willSendResponse({ contextValue, response }) {
            const { body } = response;
            if (body.kind === "single") body.singleResult = fitting(contextValue, body.singleResult, format);
            for (const [name, value] of Object.entries(quotaHeaders(contextValue)))
              response.http.headers.set(name, value);
          },
        }),
      },
    ],
  });
}

/** Serves `/graphql`, and its page to browsers. Answers what stops it. */
export async function registerGraphql(app: FastifyInstance, options: GraphqlOptions): Promise<() => Promise<void>> {
  const { schema, documents, pages, tracing, graphqlDocuments } = options;
  const format = formatterOf(options);
  const apollo = createApollo(options, format);
  const known = createKnownAnswers(schema);
  await apollo.start();
  const execute = fastifyApolloHandler(apollo, { context: async (request) => request.context as Context });

  const refuse = (reply: FastifyReply, http: number, errors: readonly unknown[]) =>
    reply
      .code(http)
      .header("Cache-Control", "no-store")
      .send({ errors: errors.map(format) });

  const isOfNobody = (request: FastifyRequest) => request.context.caller === null;

  /** Of a caller without a credential no more is read than a known question has. */
  async function unread(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const length = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
    if (!isOfNobody(request) || length <= ANONYMOUS_MAX_BYTES) return undefined;
    request.context.refused = true;
    return refuse(reply.header("Connection", "close"), GRAPHQL_REFUSED, [new ActionError("UNAUTHORIZED")]);
  }

  async function data(this: FastifyInstance, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const asked = askedIn(request);
    const answer = known(asked);
    if (answer !== null) return reply.header("Cache-Control", "no-store").type("application/json").send(answer);
    if (isOfNobody(request)) {
      request.context.refused = true;
      return refuse(reply, GRAPHQL_REFUSED, [new ActionError("UNAUTHORIZED")]);
    }
    const { operationName, variables } = asked;
    // Of a GET Apollo reads the address, where nothing can be put in its place.
    const query = textOf(request.method === "GET" ? { query: asked["query"] } : asked);
    if (query instanceof GraphQLError) return refuse(reply, STATUS.REQUEST_INVALID.http, [query]);
    if (query !== null) {
      const refusal = refusalOf(query, request.context.caller, graphqlDocuments);
      if (refusal) return refuse(reply, STATUS.REQUEST_INVALID.http, [refusal]);
      // Apollo reads it there.
      asked["query"] = query;
      const name = typeof operationName === "string" ? operationName : null;
      const bytes = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
      const checked = await documents.checkInTurn(senderOf(request.context), bytes, {
        query,
        operationName: name,
        variables: isObject(variables) ? variables : null,
      });
      if (!("kind" in checked)) return refuse(reply, STATUS.REQUEST_INVALID.http, checked);
      (request.context as Context)[CHECKED] = query;
    }
    return traced(tracing, request.context, () => execute.call(this, request, reply));
  }

  app.get("/graphql", async (request, reply) =>
    wantsPage(request) ? pages.send(reply, "graphiql") : data.call(app, request, reply),
  );
  app.post("/graphql", { onRequest: unread }, data);
  return () => apollo.stop();
}
