/** Serves the stored scripts of dependencies, each at an address that contains its hash. Independent of actions and callers. */
import type { FastifyInstance } from "fastify";
import { ActionError } from "../errors.js";
import type { StoredScripts } from "../operations/packages/kept-scripts.js";

/** Path prefix of all files that a page may load, on any origin. */
export const KEPT_ROUTE = "/client/kept/:file";

const FILE = /^([0-9a-f]{64})\.js$/;

/**
 * Headers of a stored script. Pages of other origins load it too, because knowing the hash of a script is enough. The content of an address
 * never changes. Opened directly, it is text in a document without an origin.
 */
const HEADERS = {
  "content-type": "text/javascript; charset=utf-8",
  "x-content-type-options": "nosniff",
  "cache-control": "public, max-age=31536000, immutable",
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
  "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
} as const;

export function registerKeptScripts(app: FastifyInstance, scripts: StoredScripts): void {
  app.get<{ Params: { file: string } }>(KEPT_ROUTE, async ({ params, headers }, reply) => {
    // Third-party code must not become a service worker, which could intercept later pages.
    if ("service-worker" in headers) throw new ActionError("FORBIDDEN");
    const sha256 = FILE.exec(params.file)?.[1];
    const script = sha256 === undefined ? null : await scripts.read(sha256);
    if (!script) throw new ActionError("NOT_FOUND");
    return reply.headers(HEADERS).send(script.raw ?? script.source);
  });
}
