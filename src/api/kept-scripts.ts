/** Serves the scripts that dependencies became, each at an address of its content. Knows no action and no caller. */
import type { FastifyInstance } from "fastify";
import { ActionError } from "../errors.js";
import type { KeptScripts } from "../operations/packages/kept-scripts.js";

/** Under it what a page may load lies, at whichever origin it is. */
export const KEPT_ROUTE = "/client/kept/:file";

const FILE = /^([0-9a-f]{64})\.js$/;

/**
 * Pages of other origins load them too: everyone who knows the hash of a script has the script. The content of an address never changes.
 * Opened by itself it is text in a document without an origin.
 */
const HEADERS = {
  "content-type": "text/javascript; charset=utf-8",
  "x-content-type-options": "nosniff",
  "cache-control": "public, max-age=31536000, immutable",
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
  "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
} as const;

export function registerKeptScripts(app: FastifyInstance, scripts: KeptScripts): void {
  app.get<{ Params: { file: string } }>(KEPT_ROUTE, async ({ params, headers }, reply) => {
    // Code from elsewhere must not come to stand between the service and whatever pages come later.
    if ("service-worker" in headers) throw new ActionError("FORBIDDEN");
    const sha256 = FILE.exec(params.file)?.[1];
    const script = sha256 === undefined ? null : await scripts.read(sha256);
    if (!script) throw new ActionError("NOT_FOUND");
    return reply.headers(HEADERS).send(script.raw ?? script.source);
  });
}
