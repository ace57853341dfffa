/** POST /mcp: the Model Context Protocol over streamable HTTP, without sessions. Callers need an API token or OAuth token as Bearer. */
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type GraphQLSchema, printSchema } from "graphql";
import type { Logger } from "pino";
import { ActionError } from "../../errors.js";
import type { ToolCallLog } from "../../operations/access/tool-calls.js";
import type { Caller } from "../../rules/access.js";
import { refuseField } from "../../rules/fields.js";
import { readClientDeclarations } from "../client-declarations.js";
import type { RequestContext } from "../context.js";
import type { DocsSite } from "../docs/routes.js";
import type { Resolvers } from "../graphql/schema.js";
import { isAllowedMcpOrigin } from "./origins.js";
import { createRestCaller } from "./rest-calls.js";
import { createMcpServer } from "./server.js";

/** Path at which a client reads how to sign in (RFC 9728). */
const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource/mcp";

export interface McpOptions {
  resolvers: Resolvers;
  toolCalls: ToolCallLog;
  docs: DocsSite;
  schema: GraphQLSchema;
  publicUrl: string | null;
  log: Logger;
}

function sendUnauthorized(reply: FastifyReply, base: string, isUnknownToken: boolean): FastifyReply {
  const error = isUnknownToken ? 'error="invalid_token", ' : "";
  return reply
    .code(401)
    .header("www-authenticate", `Bearer ${error}resource_metadata="${base}${RESOURCE_METADATA_PATH}"`)
    .send({ status: "UNAUTHORIZED", error: "send an API token or an OAuth token as Authorization: Bearer <token>" });
}

/**
 * Returns false if the request has no valid Bearer token. Cookies do not count, because any page of the service could then call tools.
 * @throws ActionError FORBIDDEN for a page of another origin, and for a token that does not give access to one app's tools
 */
function checkTokenAndOrigin({ headers, context }: FastifyRequest, publicUrl: string | null): boolean {
  if (!isAllowedMcpOrigin(headers, publicUrl)) {
    throw new ActionError("FORBIDDEN", "pages of other origins cannot send requests to /mcp");
  }
  if (headers["auth-token"] !== undefined || !/^Bearer +\S+$/i.test(headers.authorization ?? "")) return false;
  if (!context.caller) return false;
  if (context.caller.grantor === null)
    throw new ActionError(
      "FORBIDDEN",
      "the person who authorized this program has no role on the app any more; authorize it with another account",
    );
  if (context.caller.kind === "api" && context.caller.appId !== null) return true;
  const deniedMessage = `permission denied (got a token of the kind ${context.caller.kind}); use an API token or an OAuth token`;
  throw new ActionError("FORBIDDEN", deniedMessage);
}

/** Reads the query parameter `readonly`. Rejects other values than true and false, so that a mistake never allows changes. */
function readReadOnlyFlag({ query }: FastifyRequest): boolean {
  const text = (query as Record<string, unknown>)["readonly"] ?? "false";
  if (text === "true" || text === "false") return text === "true";
  return refuseField("readonly", "true or false", text);
}

async function sendResponse(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  reply.code(response.status);
  for (const [name, value] of response.headers) reply.header(name, value);
  return reply.header("cache-control", "no-store").send(await response.text());
}

export function registerMcp(app: FastifyInstance, options: McpOptions): void {
  const { resolvers, toolCalls, docs, schema, publicUrl, log } = options;
  let graphqlText: string | null = null;

  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    if (checkTokenAndOrigin(request, publicUrl)) return;
    const isUnknownToken = request.headers.authorization !== undefined;
    return sendUnauthorized(reply, docs.findServiceAddress(request), isUnknownToken);
  };

  function createMcpRequest(request: FastifyRequest) {
    const context = request.context as RequestContext & { caller: Caller };
    const { caller } = context;
    const tools = {
      appId: caller.appId!,
      caller,
      callRest: createRestCaller(resolvers, context),
      docs,
      serviceUrl: docs.findServiceAddress(request),
      readDeclarations: readClientDeclarations,
      readAppTypes: () => resolvers.manifests.appTypes(context, caller.appId!),
      waitForRunEnd: (runId: number, ...signals: readonly AbortSignal[]) =>
        resolvers.runs.waitForRunEnd(context, caller.appId!, runId, ...signals),
      readGraphqlSchema: () => (graphqlText ??= printSchema(schema)),
      disconnectSignal: context.getClosedSignal!(),
    };
    return { context, tools, isReadOnly: readReadOnlyFlag(request), toolCalls, log };
  }

  app.post("/mcp", { onRequest }, async (request, reply) => {
    const { body, headers } = request;
    // A batch of messages would count as one request in the rate limit, so it is rejected.
    if (Array.isArray(body))
      throw new ActionError("REQUEST_INVALID", "the body must be one JSON-RPC message (got an array)");
    const server = createMcpServer(createMcpRequest(request));
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    try {
      const transportRequest = new Request("http://localhost/mcp", {
        method: "POST",
        headers: Object.entries(headers).flatMap(([name, value]) =>
          typeof value === "string" ? [[name, value] as [string, string]] : [],
        ),
      });
      return await sendResponse(reply, await transport.handleRequest(transportRequest, { parsedBody: body }));
    } finally {
      await server.close();
    }
  });

  // Without sessions, GET has no stream to open and DELETE has no session to end.
  for (const method of ["GET", "DELETE"] as const) {
    app.route({
      method,
      url: "/mcp",
      exposeHeadRoute: false,
      onRequest,
      handler: (_request, reply) => {
        const error = "the method is not allowed; use POST";
        return reply.code(405).header("allow", "POST").send({ status: "METHOD_NOT_ALLOWED", error });
      },
    });
  }
}
