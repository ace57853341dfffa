/** REST routes of people's accounts (contract, section 7): entries for the route table in rest/routes.ts. */
import type { Route } from "./route.js";

const AUTH_PATH = "/v1/auth";
const PASSKEYS_PATH = `${AUTH_PATH}/passkeys`;

export const authRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${AUTH_PATH}/setup`,
    successStatus: 201,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: ({ auth }, request) => auth.setup(request.context, request.bodyFields()),
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/sign-in`,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: ({ auth }, request) => auth.signIn(request.context, request.bodyFields()),
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/sign-out`,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: async ({ auth }, request) => {
      const endSessionUrl = await auth.signOut(request.context);
      return { status: "SIGNED_OUT", ...(endSessionUrl !== null && { endSessionUrl }) };
    },
  },
  { method: "GET", path: `${AUTH_PATH}/session`, handle: ({ auth }, request) => auth.authSession(request.context) },
  {
    method: "PUT",
    path: `${AUTH_PATH}/account`,
    hasNoVersion: true,
    handle: async ({ auth }, request) => ({ user: await auth.updateAccount(request.context, request.bodyFields()) }),
  },
  {
    method: "GET",
    path: `${AUTH_PATH}/sessions`,
    handle: async ({ auth }, request) => {
      const sessions = await auth.authSessions(request.context);
      return request.setListTag(sessions, { sessions });
    },
  },
  {
    method: "DELETE",
    path: `${AUTH_PATH}/sessions/:sessionId`,
    handle: async ({ auth }, request) => {
      await auth.endAuthSession(request.context, request.pathId("sessionId"), request.readExpectedVersions());
      return { status: "SESSION_ENDED" };
    },
  },
  {
    method: "DELETE",
    path: `${AUTH_PATH}/sessions`,
    hasNoVersion: true,
    handle: async ({ auth }, request) => {
      await auth.endOtherAuthSessions(request.context);
      return { status: "SESSIONS_ENDED" };
    },
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/reset`,
    successStatus: 202,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: async ({ auth }, request) => {
      auth.requestReset(request.context, request.bodyFields());
      return { status: "RESET_REQUESTED" };
    },
  },
  {
    method: "POST",
    path: `${AUTH_PATH}/reset/confirm`,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: async ({ auth }, request) => {
      await auth.confirmReset(request.context, request.bodyFields());
      return { status: "PASSPHRASE_RESET" };
    },
  },
  {
    method: "GET",
    path: `${AUTH_PATH}/providers`,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: async ({ auth }) => ({ providers: await auth.providers() }),
  },
  {
    method: "POST",
    path: `${PASSKEYS_PATH}/authentication-options`,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: ({ auth }, request) => auth.passkeyAuthenticationOptions(request.context),
  },
  {
    method: "POST",
    path: `${PASSKEYS_PATH}/sign-in`,
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: ({ auth }, request) => auth.passkeySignIn(request.context, request.bodyFields()),
  },
  {
    method: "POST",
    path: `${PASSKEYS_PATH}/registration-options`,
    handle: ({ auth }, request) => auth.passkeyRegistrationOptions(request.context),
  },
  {
    method: "POST",
    path: PASSKEYS_PATH,
    successStatus: 201,
    handle: async ({ auth }, request) => ({
      passkey: await auth.registerPasskey(request.context, request.bodyFields()),
    }),
  },
  {
    method: "GET",
    path: PASSKEYS_PATH,
    handle: async ({ auth }, request) => {
      const passkeys = await auth.passkeys(request.context);
      return request.setListTag(passkeys, { passkeys });
    },
  },
  {
    method: "GET",
    path: `${PASSKEYS_PATH}/:passkeyId`,
    handle: async ({ auth }, request) => {
      const passkey = await auth.passkey(request.context, request.pathId("passkeyId"));
      return request.setTag(passkey, { passkey }, passkey.lastUsedAt);
    },
  },
  {
    method: "DELETE",
    path: `${PASSKEYS_PATH}/:passkeyId`,
    handle: async ({ auth }, request) => {
      await auth.removePasskey(request.context, request.pathId("passkeyId"), request.readExpectedVersions());
      return { status: "PASSKEY_REMOVED" };
    },
  },
  {
    method: "GET",
    path: `${AUTH_PATH}/identities`,
    handle: async ({ auth }, request) => {
      const identities = await auth.authIdentities(request.context);
      return request.setListTag(identities, { identities });
    },
  },
  {
    method: "DELETE",
    path: `${AUTH_PATH}/identities/:identityId`,
    handle: async ({ auth }, request) => {
      await auth.removeAuthIdentity(request.context, request.pathId("identityId"), request.readExpectedVersions());
      return { status: "IDENTITY_REMOVED" };
    },
  },
  {
    method: "GET",
    path: "/v1/organizations/:organizationId/audit",
    handle: ({ auth }, request) =>
      auth.organizationAudit(
        request.context,
        request.pathId("organizationId"),
        request.queryNumber("limit"),
        request.queryText("cursor"),
      ),
  },
];
