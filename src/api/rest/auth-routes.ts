/** Accounts of people over REST: rows of the facade's table (contract, section 7). */
import type { Route } from "./route.js";

const AUTH = "/v1/auth";

export const authRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${AUTH}/setup`,
    http: 201,
    open: true,
    isForAnonymous: true,
    answer: ({ auth }, q) => auth.setup(q.context, q.object()),
  },
  {
    method: "POST",
    path: `${AUTH}/sign-in`,
    open: true,
    isForAnonymous: true,
    answer: ({ auth }, q) => auth.signIn(q.context, q.object()),
  },
  {
    method: "POST",
    path: `${AUTH}/sign-out`,
    open: true,
    isForAnonymous: true,
    answer: async ({ auth }, q) => {
      await auth.signOut(q.context);
      return { status: "SIGNED_OUT" };
    },
  },
  { method: "GET", path: `${AUTH}/session`, answer: ({ auth }, q) => auth.authSession(q.context) },
  {
    method: "PUT",
    path: `${AUTH}/account`,
    stateless: true,
    answer: async ({ auth }, q) => ({ user: await auth.updateAccount(q.context, q.object()) }),
  },
  {
    method: "GET",
    path: `${AUTH}/sessions`,
    answer: async ({ auth }, q) => ({ sessions: await auth.authSessions(q.context) }),
  },
  {
    method: "DELETE",
    path: `${AUTH}/sessions/:sessionId`,
    stateless: true,
    answer: async ({ auth }, q) => {
      await auth.endAuthSession(q.context, q.id("sessionId"));
      return { status: "SESSION_ENDED" };
    },
  },
  {
    method: "DELETE",
    path: `${AUTH}/sessions`,
    stateless: true,
    answer: async ({ auth }, q) => {
      await auth.endOtherAuthSessions(q.context);
      return { status: "SESSIONS_ENDED" };
    },
  },
  {
    method: "POST",
    path: `${AUTH}/reset`,
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
    path: `${AUTH}/reset/confirm`,
    open: true,
    isForAnonymous: true,
    answer: async ({ auth }, q) => {
      await auth.confirmReset(q.context, q.object());
      return { status: "PASSPHRASE_RESET" };
    },
  },
];
