/**
 * Serves the compiled script of each action, and the debug page that runs one action. The GraphQL resolver and the page
 * sessions check the access of the caller.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import type { PageSessions } from "../operations/client/page-sessions.js";
import { sendErrorPage } from "./app-pages.js";
import { buildDebugPage } from "./debug-page.js";
import type { Resolvers } from "./graphql/schema.js";
import type { RuntimePageOrigin } from "./page-origin.js";
import { createRestRequest } from "./rest/request.js";
import { acceptsHtml, type BuiltPageSender } from "./web-assets.js";

/** Headers of an action's script. Its content depends on the visitor's cookie, so pages of other origins must not load it. */
const SCRIPT_HEADERS = {
  "content-type": "text/javascript; charset=utf-8",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
  vary: "Cookie, Auth-token, Authorization",
} as const;

const IMMUTABLE_CACHE_CONTROL = "private, max-age=31536000, immutable";
const REVALIDATED_CACHE_CONTROL = "private, no-cache";

export interface ClientScriptsOptions {
  resolvers: Resolvers;
  sessions: PageSessions;
  origin: RuntimePageOrigin;
  pages: BuiltPageSender;
}

/**
 * Registers GET `/v3/apps/:appId/actions/:id/compile`. It returns exactly the bytes whose hash is the action's `integrity`. Browsers cache
 * the response to `?v=<integrity>` for a year. With `?html` the route returns the debug page for authors (specification, Debug page).
 */
export function registerClientScriptRoutes(app: FastifyInstance, options: ClientScriptsOptions): void {
  const { resolvers, sessions, origin, pages } = options;
  const { clientActions, settings } = resolvers;

  async function sendDebugPage(request: FastifyRequest, reply: FastifyReply, appId: number, actionId: number) {
    const preview = { appId, actionId };
    const { context } = request;
    // Checks the access of a signed-in caller before a session is created or the browser is redirected.
    if (context.caller) {
      await sessions.checkAccess(context.caller, preview);
      await clientActions.compiledAction(context, appId, actionId);
    }
    const session = await origin.openPreviewSession(request, reply, preview);
    if (!session) return reply;
    const viewerContext = { ...context, caller: session.caller };
    const action = await clientActions.compiledAction(viewerContext, appId, actionId);
    const env = { ...(await settings.runtimeEnv(viewerContext, appId)), token: session.token };
    const { html, headers } = buildDebugPage({ action, env, base: origin.base });
    return reply.headers(headers).send(html);
  }

  app.get("/v3/apps/:appId/actions/:id/compile", async (request, reply) => {
    const { context, headers } = request;
    const restRequest = createRestRequest(request, context);
    const [appId, id] = [restRequest.pathId("appId"), restRequest.pathId("id")];
    const [html, version] = [restRequest.queryText("html"), restRequest.queryText("v")];
    if (html !== undefined) {
      return sendDebugPage(request, reply, appId, id).catch((error: unknown) => {
        // A person without a session gets the sign-in form; a program gets an error in JSON.
        const needsSignInForm = error instanceof ActionError && error.status === "UNAUTHORIZED" && acceptsHtml(request);
        if (needsSignInForm) return sendErrorPage(reply, pages, error);
        throw error;
      });
    }
    // With this header, the browser would run the script as a service worker, which could intercept pages of the service.
    if ("service-worker" in headers) throw new ActionError("FORBIDDEN");
    const { script, integrity } = await clientActions.compiledAction(context, appId, id);
    const cacheHeader = version === integrity ? IMMUTABLE_CACHE_CONTROL : REVALIDATED_CACHE_CONTROL;
    return reply.headers({ ...SCRIPT_HEADERS, "cache-control": cacheHeader }).send(script);
  });
}
