/** GET `/`: where everything is. Sends a person to Studio, tells a program the addresses; and GET `/docs`, the project's README. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { ActionError } from "../errors.js";
import { pathBefore } from "./page-origin.js";
import { wantsPage } from "./web-assets.js";

/** Seen from dist/src/api. */
const README = fileURLToPath(new URL("../../../README.md", import.meta.url));

const TEXT = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" } as const;

/** What the service has for whom, by address. */
export function addressesOf(baseUrl: string) {
  return {
    studio: `${baseUrl}/studio`,
    graphiql: `${baseUrl}/graphql`,
    api: `${baseUrl}/v1/apps`,
    graphql: `${baseUrl}/graphql`,
    openapi: `${baseUrl}/v1/openapi.json`,
    docs: `${baseUrl}/docs`,
    health: `${baseUrl}/health/ready`,
  };
}

export function registerFirstPage(app: FastifyInstance, baseUrl: string): void {
  const studio = `${pathBefore(baseUrl)}/studio`;
  app.get("/", (request, reply) => {
    reply.header("vary", "Accept").header("cache-control", "no-cache");
    // Not to the address that is set: whoever came by another name of this machine stays there.
    return wantsPage(request)
      ? reply.redirect(studio)
      : reply.send({ name: "Svc App Actions", ...addressesOf(baseUrl) });
  });
  app.get("/docs", async (_request, reply) => {
    const text = await readFile(README, "utf8").catch(() => {
      throw new ActionError("NOT_FOUND", "this installation came without its README");
    });
    return reply.headers(TEXT).send(text);
  });
}
