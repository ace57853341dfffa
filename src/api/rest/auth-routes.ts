/** Accounts of people over REST, as rows of the REST table (contract, section 7). */
import type { Route } from "./route.js";

const AUTH_PATH = "/v1/auth";
const PASSKEYS_PATH = `${AUTH_PATH}/passkeys`;

export const authRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${AUTH_PATH}/setup`,
    http: 201,
    open: true,
    isForAnonymous: true,
    answer: ({ auth }, q) => auth.setup(q.context, q.object()),
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/sign-in`,
    open: true,
    isForAnonymous: true,
    answer: ({ auth }, q) => auth.signIn(q.context, q.object()),
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/sign-out`,
    open: true,
    isForAnonymous: true,
    answer: async ({ auth }, q) => {
      const endSessionUrl = await auth.signOut(q.context);
      return { status: "SIGNED_OUT", ...(endSessionUrl !== null && { endSessionUrl }) };
    },
  },
  { method: "GET", path: `${AUTH_PATH}/session`, answer: ({ auth }, q) => auth.authSession(q.context) },
  {
    method: "PUT",
    path: `${AUTH_PATH}/account`,
    stateless: true,
    answer: async ({ auth }, q) => ({ user: await auth.updateAccount(q.context, q.object()) }),
  },
  {
    method: "GET",
    path: `${AUTH_PATH}/sessions`,
    answer: async ({ auth }, q) => {
      const sessions = await auth.authSessions(q.context);
      return q.ofList(sessions, { sessions });
    },
  },
  {
    method: "DELETE",
    path: `${AUTH_PATH}/sessions/:sessionId`,
    answer: async ({ auth }, q) => {
      await auth.endAuthSession(q.context, q.id("sessionId"), q.ifMatch());
      return { status: "SESSION_ENDED" };
    },
  },
  {
    method: "DELETE",
    path: `${AUTH_PATH}/sessions`,
    stateless: true,
    answer: async ({ auth }, q) => {
      await auth.endOtherAuthSessions(q.context);
      return { status: "SESSIONS_ENDED" };
    },
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/reset`,
    http: 202,
    open: true,
    isForAnonymous: true,
    answer: async ({ auth }, q) => {
      auth.requestReset(q.context, q.object());
      return { status: "RESET_REQUESTED" };
    },
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/reset/confirm`,
    open: true,
    isForAnonymous: true,
    answer: async ({ auth }, q) => {
      await auth.confirmReset(q.context, q.object());
      return { status: "PASSPHRASE_RESET" };
    },
  },
  {
    method: "GET",
    path: `${AUTH_PATH}/providers`,
    open: true,
    isForAnonymous: true,
    answer: async ({ auth }) => ({ providers: await auth.providers() }),
  },
  {
    method: "POST",
    path: `${PASSKEYS_PATH}/authentication-options`,
    open: true,
    isForAnonymous: true,
    answer: ({ auth }, q) => auth.passkeyAuthenticationOptions(q.context),
  },
  {
    method: "POST",
    path: `${PASSKEYS_PATH}/sign-in`,
    open: true,
    isForAnonymous: true,
    answer: ({ auth }, q) => auth.passkeySignIn(q.context, q.object()),
  },
  {
    method: "POST",
    path: `${PASSKEYS_PATH}/registration-options`,
    answer: ({ auth }, q) => auth.passkeyRegistrationOptions(q.context),
  },
  {
    method: "POST",
    path: PASSKEYS_PATH,
    http: 201,
    answer: async ({ auth }, q) => ({ passkey: await auth.registerPasskey(q.context, q.object()) }),
  },
  {
    method: "GET",
    path: PASSKEYS_PATH,
    answer: async ({ auth }, q) => {
      const passkeys = await auth.passkeys(q.context);
      return q.ofList(passkeys, { passkeys });
    },
  },
  {
    method: "GET",
    path: `${PASSKEYS_PATH}/:passkeyId`,
    answer: async ({ auth }, q) => {
      const passkey = await auth.passkey(q.context, q.id("passkeyId"));
      return q.at(passkey, { passkey }, passkey.lastUsedAt);
    },
  },
  {
    method: "DELETE",
    path: `${PASSKEYS_PATH}/:passkeyId`,
    answer: async ({ auth }, q) => {
      await auth.removePasskey(q.context, q.id("passkeyId"), q.ifMatch());
      return { status: "PASSKEY_REMOVED" };
    },
  },
  {
    method: "GET",
    path: `${AUTH_PATH}/identities`,
    answer: async ({ auth }, q) => {
      const identities = await auth.authIdentities(q.context);
      return q.ofList(identities, { identities });
    },
  },
  {
    method: "DELETE",
    path: `${AUTH_PATH}/identities/:identityId`,
    answer: async ({ auth }, q) => {
      await auth.removeAuthIdentity(q.context, q.id("identityId"), q.ifMatch());
      return { status: "IDENTITY_REMOVED" };
    },
  },
  {
    method: "GET",
    path: "/v1/organizations/:organizationId/audit",
    answer: ({ auth }, q) =>
      auth.organizationAudit(q.context, q.id("organizationId"), q.number("limit"), q.text("cursor")),
  },
];
