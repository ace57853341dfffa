/** GET `/v1/openapi.json`: the OpenAPI document of all REST routes. Needs no credential. Built at the first request. */
import type { FastifyInstance } from "fastify";
import type { GraphQLSchema } from "graphql";
import { createOpenapiDocument } from "./openapi/document.js";
import { ROUTES } from "./rest/routes.js";

export function registerOpenapi(app: FastifyInstance, schema: GraphQLSchema, baseUrl: string): void {
  let text: Promise<string> | null = null;
  app.get("/v1/openapi.json", async (_request, reply) => {
    text ??= createOpenapiDocument(schema, ROUTES, baseUrl).then((document) => JSON.stringify(document));
    return reply
      .type("application/json; charset=utf-8")
      .header("Cache-Control", "no-cache")
      .send(await text);
  });
}
