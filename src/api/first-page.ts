/** GET `/`: redirects a browser to Studio, and returns the addresses of the service's parts to a program. */
import type { FastifyInstance } from "fastify";
import { pathBefore } from "./page-origin.js";
import { wantsPage } from "./web-assets.js";

/** Returns the addresses of the service's parts. */
export function addressesOf(baseUrl: string) {
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

export function registerFirstPage(app: FastifyInstance, baseUrl: string): void {
  const studio = `${pathBefore(baseUrl)}/studio`;
  app.get("/", (request, reply) => {
    reply.header("vary", "Accept").header("cache-control", "no-cache");
    // Does not redirect to PUBLIC_URL: a person who used another name of this machine stays on it.
    return wantsPage(request)
      ? reply.redirect(studio)
      : reply.send({ name: "Svc App Actions", ...addressesOf(baseUrl) });
  });
}
