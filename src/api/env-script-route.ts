/** GET /v1/apps/:id/env.js: the runtime's bootstrap script, and how long whom may keep it. Decides nothing about who sees what. */
import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { envScript } from "../rules/env-script.js";
import { gated } from "./gated.js";
import type { SettingResolver } from "./graphql/setting-resolver.js";
import { restRequest } from "./rest/request.js";

/** Kept by the app user's browser alone, and asked about each time: a changed setting is seen at once. */
const HEADERS = {
  "Cache-Control": "private, no-cache",
  Vary: "Auth-Token, Authorization, Cookie",
  "Content-Type": "text/javascript; charset=utf-8",
  "X-Content-Type-Options": "nosniff",
  // A script is the one thing that any page may include with its visitor's cookie: no page of another origin may this one.
  "Cross-Origin-Resource-Policy": "same-origin",
};

function etagOf(text: string): string {
  return `"${createHash("sha256").update(text).digest("base64url")}"`;
}

function names(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return tags.includes(etag) || tags.includes("*");
}

export function registerEnvScript(app: FastifyInstance, settings: SettingResolver): void {
  app.get("/v1/apps/:appId/env.js", { onRequest: gated }, async (request, reply) => {
    const { context, id } = restRequest(request, request.context);
    const script = envScript(await settings.runtimeEnv(context, id("appId")));
    const etag = etagOf(script);
    reply.headers({ ...HEADERS, ETag: etag });
    return names(request.headers["if-none-match"], etag) ? reply.code(304).send() : reply.send(script);
  });
}
