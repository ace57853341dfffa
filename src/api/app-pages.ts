/**
 * Routes of an app's pages: `/apps/:id` runs the live versions of actions, and `/apps/:id/viewer` runs the drafts. Each load of a page
 * creates a new session, for an anonymous visitor or for the signed-in editor who opened the viewer.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError, STATUS } from "../errors.js";
import type { PageSession, PageSessions } from "../operations/client/page-sessions.js";
import { buildAppPage, buildMessagePage } from "./app-page.js";
import type { Resolvers } from "./graphql/schema.js";
import type { RuntimePageOrigin } from "./page-origin.js";
import { parsePathId } from "./rest/request.js";
import type { BuiltPageSender } from "./web-assets.js";

interface AppRoute {
  Params: { id: string };
}

export interface AppPagesOptions {
  resolvers: Resolvers;
  sessions: PageSessions;
  origin: RuntimePageOrigin;
  pages: BuiltPageSender;
}

/** Sends an error as an HTML page. For HTTP status 401 or 403, the page contains the sign-in form. */
export function sendErrorPage(reply: FastifyReply, pages: BuiltPageSender, error: unknown): FastifyReply {
  if (!(error instanceof ActionError)) throw error;
  const { http } = STATUS[error.status];
  reply.code(http);
  if (http === 401 || http === 403) return pages.sendPage(reply, "sign-in");
  if (error.details.retryAfter) reply.header("retry-after", error.details.retryAfter);
  const { html, headers } = buildMessagePage(http === 404 ? "Not found" : "Not available", error.message);
  return reply.headers(headers).send(html);
}

export function registerAppPages(app: FastifyInstance, { resolvers, sessions, origin, pages }: AppPagesOptions): void {
  async function sendAppPage(
    { context }: FastifyRequest,
    reply: FastifyReply,
    { caller, token, app: appToShow }: PageSession,
  ): Promise<FastifyReply> {
    const env = await resolvers.settings.runtimeEnv({ ...context, caller }, appToShow.id);
    const { html, headers } = buildAppPage({ name: appToShow.name, env: { ...env, token }, base: origin.base });
    return reply.headers(headers).send(html);
  }

  app.get<AppRoute>("/apps/:id", async (request, reply) => {
    const appId = parsePathId(request.params.id);
    const redirectReply = origin.redirectIfOtherOrigin(request, reply, `/apps/${appId}`);
    if (redirectReply) return redirectReply;
    try {
      return await sendAppPage(request, reply, await sessions.openVisitorSession(appId, request.context.address ?? ""));
    } catch (error) {
      return sendErrorPage(reply, pages, error);
    }
  });

  app.get<AppRoute>("/apps/:id/viewer", async (request, reply) => {
    const appId = parsePathId(request.params.id);
    try {
      const session = await origin.openPreviewSession(request, reply, { appId, actionId: null });
      return session ? await sendAppPage(request, reply, session) : reply;
    } catch (error) {
      return sendErrorPage(reply, pages, error);
    }
  });
}
