/** Serves the stored scripts of dependencies: npm packages, and scripts of other hosts. Needs no access check: a path contains a hash. */
import type { FastifyInstance } from "fastify";
import { ActionError } from "../errors.js";
import type { StoredScripts } from "../operations/packages/kept-scripts.js";

export const STORED_SCRIPT_ROUTE = "/client/kept/:file";

const SCRIPT_FILE_PATTERN = /^([0-9a-f]{64})\.js$/;

/** Headers of a stored script. Pages of other origins may load it, because its content is public to everyone who knows its hash. */
const SCRIPT_HEADERS = {
  "content-type": "text/javascript; charset=utf-8",
  "x-content-type-options": "nosniff",
  "cache-control": "public, max-age=31536000, immutable",
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
  "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
} as const;

export function registerStoredScriptRoutes(app: FastifyInstance, scripts: StoredScripts): void {
  app.get<{ Params: { file: string } }>(STORED_SCRIPT_ROUTE, async ({ params, headers }, reply) => {
    // With this header, the browser would run the script as a service worker, which could intercept pages of the service.
    if ("service-worker" in headers) throw new ActionError("FORBIDDEN");
    const sha256 = SCRIPT_FILE_PATTERN.exec(params.file)?.[1];
    const script = sha256 === undefined ? null : await scripts.read(sha256);
    if (!script) throw new ActionError("NOT_FOUND");
    return reply.headers(SCRIPT_HEADERS).send(script.raw ?? script.source);
  });
}
