/**
 * GET /v1/apps/:id/svc.d.ts: TypeScript declarations of `Svc` for one app, for editors, compilers and coding agents.
 */
import type { FastifyInstance } from "fastify";
import { createQuotaHeaders } from "./context.js";
import type { ManifestResolver } from "./graphql/manifest-resolver.js";
import { requireCredential } from "./require-credential.js";
import { createRestRequest } from "./rest/request.js";

export function registerAppTypesRoute(app: FastifyInstance, manifests: ManifestResolver): void {
  app.get("/v1/apps/:appId/svc.d.ts", { onRequest: requireCredential }, async (request, reply) => {
    const { context } = request;
    const { pathId } = createRestRequest(request, context);
    const text = await manifests.appTypes(context, pathId("appId"));
    return reply
      .headers(createQuotaHeaders(context))
      .header("Cache-Control", "no-store")
      .header("X-Content-Type-Options", "nosniff")
      .type("text/plain; charset=utf-8")
      .send(text);
  });
}
