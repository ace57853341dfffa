/**
 * GET /v1/apps/:id/env.js: serves the bootstrap script of the runtime (contract, section 3). Sets its cache headers, and decides which
 * pages may load it.
 */
import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { buildWindowEnvScript } from "../rules/env-script.js";
import type { CallerReader } from "./caller.js";
import type { SettingResolver } from "./graphql/setting-resolver.js";
import { requireCredential } from "./require-credential.js";
import { createRestRequest } from "./rest/request.js";

/** Headers of the script. Browsers check for a new version at each use, so that a changed setting has effect at once. */
const SCRIPT_HEADERS = {
  "Cache-Control": "private, no-cache",
  Vary: "Auth-Token, Authorization, Cookie, Origin, Sec-Fetch-Site",
  "Content-Type": "text/javascript; charset=utf-8",
  "X-Content-Type-Options": "nosniff",
  // Without this header, a page of any origin could load the script with the visitor's cookie and read the visitor's data from it.
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** Headers of the script for pages of other origins. Any page may load it, because it contains no data of the visitor. */
const PUBLIC_SCRIPT_HEADERS = { ...SCRIPT_HEADERS, "Cross-Origin-Resource-Policy": "cross-origin" };

function computeETag(text: string): string {
  return `"${createHash("sha256").update(text).digest("base64url")}"`;
}

function includesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return tags.includes(etag) || tags.includes("*");
}

export function registerEnvScript(app: FastifyInstance, settings: SettingResolver, callers: CallerReader): void {
  app.get("/v1/apps/:appId/env.js", async (request, reply) => {
    const { context, pathId } = createRestRequest(request, request.context);
    // The service ignores the cookie if a page of another origin requests the script. Without a token, `caller` is then null.
    const isPublic = context.caller === null && callers.detectRequestSource(request.headers) === "foreign";
    if (!isPublic) await requireCredential(request);
    const env = isPublic ? settings.publicEnv(pathId("appId")) : settings.runtimeEnv(context, pathId("appId"));
    const script = buildWindowEnvScript(await env);
    const etag = computeETag(script);
    reply.headers({ ...(isPublic ? PUBLIC_SCRIPT_HEADERS : SCRIPT_HEADERS), ETag: etag });
    return includesEtag(request.headers["if-none-match"], etag) ? reply.code(304).send() : reply.send(script);
  });
}
