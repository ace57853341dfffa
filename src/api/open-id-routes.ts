/**
 * Sign-in with an OpenID provider: the redirect to the provider and back (contract, section 7). A cookie contains the secrets of one
 * sign-in, so that only the browser that started the sign-in can use the provider's answer.
 */
import { parseCookie, stringifySetCookie } from "cookie";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import {
  formatOpenIdFlowCookie,
  type OpenId,
  type OpenIdFlow,
  parseOpenIdFlowCookie,
} from "../operations/accounts/open-id.js";
import { toSafeReturnPath } from "../rules/return-path.js";
import { createFlatShape, refuseUnknownFields } from "../rules/unknown-fields.js";
import { toSignInRequest } from "./context.js";
import { getPathPrefix } from "./page-origin.js";

const FLOW_COOKIE_SECONDS = 600;
const LINK_SHAPE = createFlatShape(["next"]);
const PROVIDER_ROUTE = "/v1/auth/oidc/:provider";

export interface OpenIdRoutesOptions {
  openId: OpenId;
  /** The service's address for people, without a trailing slash. */
  baseUrl: string;
}

export function registerOpenIdRoutes(app: FastifyInstance, { openId, baseUrl }: OpenIdRoutesOptions): void {
  const secure = baseUrl.startsWith("https:");
  // The prefix `__Host-` prevents other hosts of the same domain from setting the cookie. Browsers accept this prefix only over https.
  const cookieName = secure ? "__Host-svc_openid" : "svc_openid";
  const pathPrefix = getPathPrefix(baseUrl);
  const formatFlowCookie = (value: string, maxAge: number) =>
    stringifySetCookie({ name: cookieName, value, maxAge, path: "/", httpOnly: true, sameSite: "lax", secure });
  const readProvider = ({ params }: FastifyRequest) => (params as { provider: string }).provider;
  const createCallbackUrl = (request: FastifyRequest) =>
    `${request.context.browser!.origin}${pathPrefix}/v1/auth/oidc/${encodeURIComponent(readProvider(request))}/callback`;
  const readNextPath = ({ query, body }: FastifyRequest) => {
    const { next } = { ...(query as object), ...(body as object | undefined) } as { next?: unknown };
    return toSafeReturnPath(next, `${pathPrefix}/studio`);
  };
  const setFlowCookie = (reply: FastifyReply, flow: OpenIdFlow) =>
    reply
      .header("set-cookie", formatFlowCookie(formatOpenIdFlowCookie(flow), FLOW_COOKIE_SECONDS))
      .header("cache-control", "no-store");

  app.get(`${PROVIDER_ROUTE}/start`, async (request, reply) => {
    const { url, flow } = await openId.start(readProvider(request), createCallbackUrl(request), readNextPath(request));
    return setFlowCookie(reply, flow).redirect(url);
  });

  // A GET route would be unsafe: a link on another site could connect the account with an attacker's identity.
  app.post(`${PROVIDER_ROUTE}/link`, async (request, reply) => {
    const { caller } = request.context;
    if (!caller) throw new ActionError("UNAUTHORIZED");
    const { personId } = caller;
    if (caller.session !== "full" || personId === null) throw new ActionError("FORBIDDEN");
    refuseUnknownFields(request.body, LINK_SHAPE);
    const linkRequest = { ...toSignInRequest(request.context), caller: { ...caller, personId } };
    const { url, flow } = await openId.startLink(
      linkRequest,
      readProvider(request),
      createCallbackUrl(request),
      readNextPath(request),
    );
    setFlowCookie(reply, flow);
    return { url };
  });

  app.get(`${PROVIDER_ROUTE}/callback`, async (request, reply) => {
    const flow = parseOpenIdFlowCookie(parseCookie(request.headers.cookie ?? "")[cookieName]);
    const callbackUrl = new URL(createCallbackUrl(request));
    callbackUrl.search = new URL(request.url, callbackUrl).search;
    const outcome = await openId.finish(toSignInRequest(request.context), readProvider(request), flow, callbackUrl);
    if (outcome.kind === "signed-in") request.context.browser!.setSession(outcome.signedIn.session);
    // Keeps the session cookie that `setSession` may have set on this response.
    const setCookieHeaders = [reply.getHeader("set-cookie") ?? []].flat().map(String);
    // Needed because Fastify would add to the existing `set-cookie` header instead of replacing it.
    reply.removeHeader("set-cookie");
    reply.header("set-cookie", [
      ...setCookieHeaders.filter((text) => !text.startsWith(cookieName)),
      formatFlowCookie("", 0),
    ]);
    reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
    const next = toSafeReturnPath(outcome.next, `${pathPrefix}/studio`);
    if (outcome.kind !== "refused") return reply.redirect(next);
    return reply.redirect(`${pathPrefix}/studio?sign-in=${outcome.reason}`);
  });
}
