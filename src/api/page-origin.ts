/**
 * Determines the origin of pages that run authors' code: the setting RUNTIME_URL, otherwise the service's own origin. Redirects browsers to
 * that origin.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import type { PageSession, PageSessions, PreviewPage } from "../operations/client/page-sessions.js";
import { TRIGGER_ROUTE } from "./http-triggers.js";
import { STORED_SCRIPT_ROUTE } from "./stored-script-routes.js";

export interface RuntimePageOriginOptions {
  sessions: PageSessions;
  /** The service's address for people, without a trailing slash. */
  baseUrl: string;
  /** The setting RUNTIME_URL: origin of pages that run authors' code. If null, these pages have the service's own origin. */
  runtimeUrl: string | null;
}

export interface RuntimePageOrigin {
  /** Path prefix of the service at the origin of pages that run authors' code. */
  base: string;
  /**
   * If the browser requested the page at another origin, redirects it to `path` at the origin of authors' pages. Otherwise returns null.
   */
  redirectIfOtherOrigin(request: FastifyRequest, reply: FastifyReply, path: string): FastifyReply | null;
  /**
   * Returns the session of an editor's page; null if this function has redirected the browser.
   * @throws the errors of PageSessions.preview
   */
  openPreviewSession(request: FastifyRequest, reply: FastifyReply, preview: PreviewPage): Promise<PageSession | null>;
}

const DEBUG_PAGE_ROUTE = "/v3/apps/:appId/actions/:id/compile";

/** Routes that work at the origin of pages that run authors' code. Requests of all other routes get 404 there. */
const PAGE_ORIGIN_ROUTES = [
  "/apps/:id",
  "/apps/:id/viewer",
  DEBUG_PAGE_ROUTE,
  "/client/*",
  STORED_SCRIPT_ROUTE,
  TRIGGER_ROUTE,
];

function isServedAtPageOrigin({ routeOptions: { url = "" }, query }: FastifyRequest): boolean {
  return PAGE_ORIGIN_ROUTES.includes(url) && (url !== DEBUG_PAGE_ROUTE || "html" in (query as object));
}

const createPreviewPath = ({ appId, actionId }: PreviewPage) =>
  actionId === null ? `/apps/${appId}/viewer?` : `/v3/apps/${appId}/actions/${actionId}/compile?html&`;

/** Returns the path of a URL without a trailing slash; "" if the URL has no path. */
export const getPathPrefix = (address: string): string => new URL(address).pathname.replace(/\/$/, "");

/**
 * Registers the rule that the origin RUNTIME_URL serves only PAGE_ORIGIN_ROUTES. Returns the functions that redirect pages to this origin.
 */
export function registerRuntimePageOrigin(
  app: FastifyInstance,
  { sessions, baseUrl, runtimeUrl }: RuntimePageOriginOptions,
): RuntimePageOrigin {
  if (runtimeUrl === null) {
    return {
      base: getPathPrefix(baseUrl),
      redirectIfOtherOrigin: () => null,
      openPreviewSession: ({ context }, _reply, preview) => sessions.openPreviewSession(context.caller, preview),
    };
  }
  const { host } = new URL(runtimeUrl);
  const isAtRuntimeHost = (request: FastifyRequest) => request.headers.host?.toLowerCase() === host;

  // Rejects routes that need the sign-in or its cookie, which the origin RUNTIME_URL does not have.
  app.addHook("onRequest", async (request) => {
    if (isAtRuntimeHost(request) && !isServedAtPageOrigin(request)) throw new ActionError("NOT_FOUND");
  });

  return {
    base: "",
    redirectIfOtherOrigin: (request, reply, path) =>
      isAtRuntimeHost(request) ? null : reply.redirect(runtimeUrl + path),
    async openPreviewSession(request, reply, preview) {
      const path = createPreviewPath(preview);
      reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
      if (!isAtRuntimeHost(request)) {
        const code = await sessions.createCode(request.context.caller, preview);
        reply.redirect(`${runtimeUrl}${path}once=${code}`);
        return null;
      }
      const { once } = request.query as { once?: unknown };
      const session = typeof once === "string" ? await sessions.redeem(once, preview) : null;
      // The one-time code is missing or was already used, for example if the person reloaded the page. The service's own origin creates a
      // new code.
      if (!session) reply.redirect(baseUrl + path.slice(0, -1));
      return session;
    },
  };
}
