/** An action's script at its own address, and the debug page around it. Decides nothing: the resolver does. */
import type { FastifyInstance } from "fastify";
import { ActionError } from "../errors.js";
import { debugPage } from "./debug-page.js";
import type { Resolvers } from "./graphql/schema.js";
import { toId } from "./rest/request.js";
import { type WebPages, wantsPage } from "./web-assets.js";

interface CompileRoute {
  Params: { appId: string; id: string };
  Querystring: Record<string, string | string[]>;
}

/** `no-cors` readers of other origins, a script element among them, get nothing: what answers depends on the cookie. */
const SCRIPT_HEADERS = {
  "content-type": "text/javascript; charset=utf-8",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  vary: "Cookie, Auth-token, Authorization",
} as const;

const FOR_EVER = "private, max-age=31536000, immutable";
const ASK_AGAIN = "private, no-cache";

/**
 * GET `/v3/apps/:appId/actions/:id/compile`: the very bytes whose hash is the action's `integrity`; with `?v=<integrity>` kept for
 * ever by the browser that asked. With `?html` the debug page (specification, Debug page), for authors.
 */
export function registerClientScripts(app: FastifyInstance, { clients }: Resolvers, pages: WebPages): void {
  app.get<CompileRoute>("/v3/apps/:appId/actions/:id/compile", async (request, reply) => {
    const { context, params, query } = request;
    // The debug page is for people: one without a credential is asked for it where a program is refused.
    if ("html" in query && !context.caller && wantsPage(request)) return pages.send(reply.code(401), "sign-in");
    const appId = toId(params.appId);
    const { id, name, script, integrity, assets } = await clients.compiledAction(context, appId, toId(params.id));
    if ("html" in query) {
      const { kind } = context.caller!;
      if (kind !== "editor" && kind !== "admin") throw new ActionError("FORBIDDEN");
      const { html, headers } = debugPage({ appId, id, name, assets });
      return reply.headers(headers).send(html);
    }
    const kept = query["v"] === integrity ? FOR_EVER : ASK_AGAIN;
    return reply.headers({ ...SCRIPT_HEADERS, "cache-control": kept }).send(script);
  });
}
