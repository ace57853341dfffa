/** GET /v1/apps/:id/env.js: the runtime's bootstrap script (contract, section 3), its cache headers and which pages can include it. */
import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { buildEnvScript } from "../rules/env-script.js";
import type { CallerReader } from "./caller.js";
import { requireAdmission } from "./gated.js";
import type { SettingResolver } from "./graphql/setting-resolver.js";
import { restRequest } from "./rest/request.js";

/**
 * Headers of the script. Only the app user's browser can store it, and revalidates it on each use, so that a changed setting shows at once.
 */
const SCRIPT_HEADERS = {
  "Cache-Control": "private, no-cache",
  Vary: "Auth-Token, Authorization, Cookie, Origin, Sec-Fetch-Site",
  "Content-Type": "text/javascript; charset=utf-8",
  "X-Content-Type-Options": "nosniff",
  // A page of any origin could load this script with the cookie of its visitor, and read the visitor's data from it.
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** Headers of the script for pages on other origins. It has no data of its visitor, so any page can load it. */
const PUBLIC_HEADERS = { ...SCRIPT_HEADERS, "Cross-Origin-Resource-Policy": "cross-origin" };

function etagOf(text: string): string {
  return `"${createHash("sha256").update(text).digest("base64url")}"`;
}

function headerNamesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return tags.includes(etag) || tags.includes("*");
}

export function registerEnvScript(app: FastifyInstance, settings: SettingResolver, callers: CallerReader): void {
  app.get("/v1/apps/:appId/env.js", async (request, reply) => {
    const { context, id } = restRequest(request, request.context);
    // A request from another origin with only a cookie has no caller, so it gets the public values.
    const isPublic = context.caller === null && callers.sourceOf(request.headers) === "foreign";
    if (!isPublic) await requireAdmission(request);
    const env = isPublic ? settings.publicEnv(id("appId")) : settings.runtimeEnv(context, id("appId"));
    const script = buildEnvScript(await env);
    const etag = etagOf(script);
    reply.headers({ ...(isPublic ? PUBLIC_HEADERS : SCRIPT_HEADERS), ETag: etag });
    return headerNamesEtag(request.headers["if-none-match"], etag) ? reply.code(304).send() : reply.send(script);
  });
}
