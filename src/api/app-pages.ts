/**
 * The example app at `/apps/:id` (live) and `/apps/:id/viewer`, and the sign-in that gives a browser its cookie.
 *
 * Which session a page has, and where it is remembered (contract, section 2, cookie `auth_token`):
 * - The live page gives a visitor of a published app an anonymous runtime session, for 30 days. Its cookie is for the whole service
 *   where the browser had none that holds; where it has one, an editor's say, that one stays as it is, and the visitor's is
 *   remembered for `/apps/:id` alone.
 * - The viewer wants the cookie of an editor of the app, and asks for a token where there is none. The page itself gets a viewer
 *   session of that editor, remembered for `/apps/:id/viewer` alone, which ends with the editor's rights or after half a day.
 * - The page's scripts cannot read any cookie, and none counts for them: they are handed the page's own token (api/app-page.ts).
 */
import { stringifySetCookie } from "cookie";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError, STATUS } from "../errors.js";
import type { Credentials } from "../operations/access/credentials.js";
import type { Held, PageSession, PageSessions } from "../operations/access/page-sessions.js";
import { envScript } from "../rules/env-script.js";
import { appPage, messagePage } from "./app-page.js";
import { COOKIE, cookieTokens, isForeign } from "./caller.js";
import type { Resolvers } from "./graphql/schema.js";
import { toId } from "./rest/request.js";
import type { WebPages } from "./web-assets.js";

const SIGNED_IN_SECONDS = 7 * 24 * 60 * 60;

interface AppRoute {
  Params: { id: string };
}

export interface AppPagesOptions {
  resolvers: Resolvers;
  sessions: PageSessions;
  credentials: Credentials;
  pages: WebPages;
  /** Cookies travel over https alone. */
  secure: boolean;
}

export function registerAppPages(app: FastifyInstance, options: AppPagesOptions): void {
  const { resolvers, sessions, credentials, pages, secure } = options;

  function cookie(value: string, path: string, maxAge: number): string {
    return stringifySetCookie({ name: COOKIE, value, path, maxAge, httpOnly: true, sameSite: "lax", secure });
  }

  async function sendApp(reply: FastifyReply, session: PageSession, path: string): Promise<FastifyReply> {
    const { caller, token, app: shown, made } = session;
    const env = await resolvers.settings.runtimeEnv({ caller, idempotencyKey: null }, shown.id);
    const { html, headers } = appPage({ name: shown.name, envScript: envScript(env), token });
    if (made) {
      reply.header("set-cookie", cookie(token, path, Math.floor((made.expiresAt.getTime() - Date.now()) / 1000)));
    }
    return reply.headers(headers).send(html);
  }

  function sendRefusal(reply: FastifyReply, error: unknown): FastifyReply {
    if (!(error instanceof ActionError)) throw error;
    const { http } = STATUS[error.status];
    reply.code(http);
    if (http === 401 || http === 403) return pages.send(reply, "sign-in");
    if (error.details.retryAfter) reply.header("retry-after", error.details.retryAfter);
    const { html, headers } = messagePage(http === 404 ? "Not found" : "Not now", error.message);
    return reply.headers(headers).send(html);
  }

  const heldBy = (request: FastifyRequest): Promise<Held[]> => sessions.holders(cookieTokens(request.headers));

  app.get<AppRoute>("/apps/:id", async (request, reply) => {
    const appId = toId(request.params.id);
    try {
      const held = await heldBy(request);
      const session = await sessions.visit(appId, held, request.ip);
      return await sendApp(reply, session, held.length > 0 ? `/apps/${appId}` : "/");
    } catch (error) {
      return sendRefusal(reply, error);
    }
  });

  app.get<AppRoute>("/apps/:id/viewer", async (request, reply) => {
    const appId = toId(request.params.id);
    try {
      const session = await sessions.preview(appId, await heldBy(request));
      return await sendApp(reply, session, `/apps/${appId}/viewer`);
    } catch (error) {
      return sendRefusal(reply, error);
    }
  });

  // Signing in by another site's form would let a visitor work in a stranger's name.
  function refuseForeign({ headers }: FastifyRequest): void {
    if (isForeign(headers)) throw new ActionError("FORBIDDEN", "pages of this service alone sign in and out");
  }

  app.post("/v1/session", async (request, reply) => {
    refuseForeign(request);
    const { token } = (request.body ?? {}) as { token?: unknown };
    const caller = typeof token === "string" ? await credentials.resolve(token) : null;
    if (!caller) throw new ActionError("UNAUTHORIZED");
    const seconds = Math.min(SIGNED_IN_SECONDS, Math.floor((caller.expiresAt - Date.now()) / 1000));
    reply.header("set-cookie", cookie(token as string, "/", seconds)).header("cache-control", "no-store");
    return { status: "SIGNED_IN", kind: caller.kind };
  });

  app.delete("/v1/session", async (request, reply) => {
    refuseForeign(request);
    reply.header("set-cookie", cookie("", "/", 0)).header("cache-control", "no-store");
    return { status: "SIGNED_OUT" };
  });
}
