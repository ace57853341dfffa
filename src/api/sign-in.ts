/**
 * Signs a browser in with a token that a person pasted, by storing the token in a cookie (contract, section 2). Also signs out. `/v1/auth`
 * signs people in with their passphrase.
 */
import type { FastifyInstance } from "fastify";
import { ActionError } from "../errors.js";
import type { Credentials } from "../operations/access/credentials.js";
import type { PageSessions } from "../operations/client/page-sessions.js";
import { describeValue } from "../rules/describe-value.js";
import { createFlatShape, NO_FIELDS, refuseUnknownFields } from "../rules/unknown-fields.js";
import type { AuthResolver } from "./graphql/auth-resolver.js";
import type { SessionCookieHeaders } from "./session-cookie.js";

const TOKEN_COOKIE_SECONDS = 7 * 24 * 60 * 60;

const SIGN_IN_SHAPE = createFlatShape(["token", "keep"]);

export interface TokenSignInOptions {
  credentials: Credentials;
  /** Sessions of app pages. Signing out ends the sessions of pages that the person opened. */
  sessions: PageSessions;
  /** Resolver that ends the person's session, if the browser has one. */
  auth: Pick<AuthResolver, "authSession" | "signOut">;
  cookieHeaders: SessionCookieHeaders;
}

export function registerTokenSignInRoutes(
  app: FastifyInstance,
  { credentials, sessions, auth, cookieHeaders }: TokenSignInOptions,
): void {
  app.get("/v1/session", async ({ context }, reply) => {
    const { caller } = context;
    reply.header("cache-control", "no-store");
    if (!caller) return { status: "SIGNED_OUT" };
    const signInState = { status: "SIGNED_IN", kind: caller.kind };
    if (!caller.session) return signInState;
    const { user } = await auth.authSession(context);
    return { ...signInState, email: user.email, isProvisional: caller.session === "provisional" };
  });

  app.post("/v1/session", async (request, reply) => {
    const { address } = request.context;
    const { token, keep = true } = (request.body ?? {}) as { token?: unknown; keep?: unknown };
    if (typeof keep !== "boolean")
      throw new ActionError("REQUEST_INVALID", `keep must be true or false (got ${describeValue(keep)})`);
    const caller = typeof token === "string" ? await credentials.resolve(token, address) : null;
    if (!caller) throw new ActionError("UNAUTHORIZED");
    refuseUnknownFields(request.body, SIGN_IN_SHAPE);
    if (request.context.caller?.session) await auth.signOut(request.context);
    reply.removeHeader("set-cookie");
    const seconds = Math.min(TOKEN_COOKIE_SECONDS, Math.floor((caller.expiresAt - Date.now()) / 1000));
    reply
      .header("set-cookie", cookieHeaders.createCookieHeader(token as string, keep ? seconds : null))
      .header("cache-control", "no-store");
    return { status: "SIGNED_IN", kind: caller.kind };
  });

  app.delete("/v1/session", async (request, reply) => {
    const { caller } = request.context;
    refuseUnknownFields(request.body, NO_FIELDS);
    if (caller) await sessions.endSession(caller.credentialId);
    const endSessionUrl = await auth.signOut(request.context);
    reply.header("cache-control", "no-store");
    return { status: "SIGNED_OUT", ...(endSessionUrl !== null && { endSessionUrl }) };
  });
}
