/**
 * Origin of the pages that run authors' code, and the way of a signed-in editor to it: the service's own origin, or only RUNTIME_URL. Knows
 * no document.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import type { PageSession, PageSessions, Preview } from "../operations/client/page-sessions.js";
import { TRIGGER_ADDRESS } from "./http-triggers.js";
import { KEPT_ROUTE } from "./kept-scripts.js";

export interface PageOriginOptions {
  sessions: PageSessions;
  /** The service's address for people, without a closing slash. */
  baseUrl: string;
  /** The origin of those pages; null: the service's own. */
  runtimeUrl: string | null;
}

export interface PageOrigin {
  /** The path before the service's own at the origin of those pages. */
  base: string;
  /** Sends a browser that came to the wrong origin on to `path` at the right one; null where it came to the right one. */
  moved(request: FastifyRequest, reply: FastifyReply, path: string): FastifyReply | null;
  /** The session of an editor's page; null where the browser has been sent on. @throws as PageSessions.preview */
  preview(request: FastifyRequest, reply: FastifyReply, preview: Preview): Promise<PageSession | null>;
}

const DEBUG_PAGE = "/v3/apps/:appId/actions/:id/compile";

/** All that the origin of those pages serves. */
const SERVED = ["/apps/:id", "/apps/:id/viewer", DEBUG_PAGE, "/client/*", KEPT_ROUTE, TRIGGER_ADDRESS];

function isServed({ routeOptions: { url = "" }, query }: FastifyRequest): boolean {
  return SERVED.includes(url) && (url !== DEBUG_PAGE || "html" in (query as object));
}

const pathOf = ({ appId, actionId }: Preview) =>
  actionId === null ? `/apps/${appId}/viewer?` : `/v3/apps/${appId}/actions/${actionId}/compile?html&`;

/** The path of an address, "" where it has none. */
export const pathBefore = (address: string): string => new URL(address).pathname.replace(/\/$/, "");

export function createPageOrigin(
  app: FastifyInstance,
  { sessions, baseUrl, runtimeUrl }: PageOriginOptions,
): PageOrigin {
  if (runtimeUrl === null) {
    return {
      base: pathBefore(baseUrl),
      moved: () => null,
      preview: ({ context }, _reply, preview) => sessions.preview(context.caller, preview),
    };
  }
  const { host } = new URL(runtimeUrl);
  const isThere = (request: FastifyRequest) => request.headers.host?.toLowerCase() === host;

  // Nothing that a person signs in to, and nothing that a cookie could be for.
  app.addHook("onRequest", async (request) => {
    if (isThere(request) && !isServed(request)) throw new ActionError("NOT_FOUND");
  });

  return {
    base: "",
    moved: (request, reply, path) => (isThere(request) ? null : reply.redirect(runtimeUrl + path)),
    async preview(request, reply, preview) {
      const path = pathOf(preview);
      reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
      if (!isThere(request)) {
        const code = await sessions.handOver(request.context.caller, preview);
        reply.redirect(`${runtimeUrl}${path}once=${code}`);
        return null;
      }
      const { once } = request.query as { once?: unknown };
      const session = typeof once === "string" ? await sessions.redeem(once, preview) : null;
      // A spent code, as after a reload: the service's own origin knows who is signed in.
      if (!session) reply.redirect(baseUrl + path.slice(0, -1));
      return session;
    },
  };
}
