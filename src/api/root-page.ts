/** GET `/`: redirects a browser to Studio, and returns the addresses of Studio, the API and the documentation to a program. */
import type { FastifyInstance } from "fastify";
import { getPathPrefix } from "./page-origin.js";
import { acceptsHtml } from "./web-assets.js";

export function getServiceUrls(baseUrl: string) {
  return {
    studio: `${baseUrl}/studio`,
    graphiql: `${baseUrl}/graphql`,
    api: `${baseUrl}/v1/apps`,
    graphql: `${baseUrl}/graphql`,
    openapi: `${baseUrl}/v1/openapi.json`,
    docs: `${baseUrl}/docs/`,
    llms: `${baseUrl}/llms.txt`,
    health: `${baseUrl}/health/ready`,
  };
}

export function registerRootPage(app: FastifyInstance, baseUrl: string): void {
  const studio = `${getPathPrefix(baseUrl)}/studio`;
  app.get("/", (request, reply) => {
    reply.header("vary", "Accept").header("cache-control", "no-cache");
    // Redirects to a relative address, not to PUBLIC_URL, so that the person stays on the host name that they entered.
    return acceptsHtml(request)
      ? reply.redirect(studio)
      : reply.send({ name: "Svc App Actions", ...getServiceUrls(baseUrl) });
  });
}
