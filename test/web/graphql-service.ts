/** Minimal service for tests of GraphiQL: serves GraphiQL and the files of the service's pages, and GraphQL over HTTP and WebSocket. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { ApolloServer } from "@apollo/server";
import { fastifyApolloHandler } from "@as-integrations/fastify";
import Fastify from "fastify";
import { buildSchema } from "graphql";
import { useServer as serveSockets } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";
import { acceptsHtml, registerWebAssets } from "../../src/api/web-assets.js";

const SCHEMA_FILE = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));

/** Schema of the service with an additional field `token`. Only this field returns a value. */
const schema = buildSchema(
  `${readFileSync(SCHEMA_FILE, "utf8")} extend type Query { token: String } extend type Subscription { token: String }`,
);

interface RequestContext {
  token?: unknown;
}

const resolvers = {
  token: (_: unknown, { token }: RequestContext) => token,
};

export interface GraphqlService {
  origin: string;
  close(): Promise<void>;
}

/** Starts the service. The field `token` returns the credential from the header of a request, or from the parameters of a WebSocket. */
export async function startGraphqlService(): Promise<GraphqlService> {
  const app = Fastify({ forceCloseConnections: true });
  const apolloServer = new ApolloServer<RequestContext>({
    schema,
    rootValue: resolvers,
    stopOnTerminationSignals: false,
  });
  await apolloServer.start();
  const pages = registerWebAssets(app);
  const data = fastifyApolloHandler(apolloServer, {
    context: async (request) => ({ token: request.headers["auth-token"] ?? null }),
  });
  app.get("/graphql", (request, reply) =>
    acceptsHtml(request) ? pages.sendPage(reply, "graphiql") : data.call(app, request, reply),
  );
  app.post("/graphql", data);
  const server = new WebSocketServer({ server: app.server, path: "/graphql" });
  const sockets = serveSockets<{ authToken?: string }, Record<string, never>>(
    {
      schema,
      context: ({ connectionParams }) => ({ token: connectionParams?.authToken ?? null }),
      roots: {
        subscription: {
          async *token(_: unknown, { token }: RequestContext) {
            yield { token };
          },
        },
      },
    },
    server,
  );
  await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    origin: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    async close() {
      await sockets.dispose();
      await apolloServer.stop();
      await app.close();
    },
  };
}
