/** GET `/`: where everything is. Sends a person to Studio, tells a program the addresses; and GET `/docs`, the project's documents. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply } from "fastify";
import { ActionError } from "../errors.js";
import { pathBefore } from "./page-origin.js";
import { wantsPage } from "./web-assets.js";

/** Seen from dist/src/api. */
const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** Documents lie at the addresses that their links to each other lead to: these above `/docs`. */
const ABOVE = ["README.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"];
const PAGE = /^[A-Za-z-]+\.md$/;

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

async function sendDocument(reply: FastifyReply, ...path: string[]): Promise<FastifyReply> {
  const text = await readFile(join(ROOT, ...path), "utf8").catch(() => {
    throw new ActionError("NOT_FOUND", `this installation came without ${path.join("/")}`);
  });
  return reply.headers(TEXT).send(text);
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
  app.get("/docs", (_request, reply) => sendDocument(reply, "README.md"));
  for (const document of ABOVE) app.get(`/${document}`, (_request, reply) => sendDocument(reply, document));
  app.get<{ Params: { page: string } }>("/docs/:page", (request, reply) => {
    const { page } = request.params;
    if (!PAGE.test(page)) throw new ActionError("NOT_FOUND", "there is no such page of the documentation");
    return sendDocument(reply, "docs", page);
  });
}
