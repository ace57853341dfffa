/** The session of a page over REST, as rows of the REST table. */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const SESSION_ROUTE = "/v1/apps/:appId/session";

export const sessionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SESSION_ROUTE,
    answer: async ({ sessions }, q) => ({ session: await sessions.appSession(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: SESSION_ROUTE,
    answer: async ({ sessions }, q) => ({ session: await sessions.authorize(q.context, q.id("appId"), q.object()) }),
  },
  {
    method: "POST",
    path: `${SESSION_ROUTE}/verify`,
    answer: ({ sessions }, q) => sessions.verify(q.context, q.id("appId"), q.object()),
  },
  {
    method: "PUT",
    path: SESSION_ROUTE,
    stateless: true,
    answer: async ({ sessions }, q) => ({
      session: await sessions.setSessionLocale(q.context, q.id("appId"), q.object(flatShape(["locale"]))["locale"]),
    }),
  },
  {
    method: "DELETE",
    path: SESSION_ROUTE,
    stateless: true,
    answer: async ({ sessions }, q) => ({ session: await sessions.logoutAppUser(q.context, q.id("appId")) }),
  },
];
