/** The session of a page over REST, as rows of the REST table. */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const SESSION = "/v1/apps/:appId/session";

export const sessionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: SESSION,
    answer: async ({ sessions }, q) => ({ session: await sessions.appSession(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: SESSION,
    answer: async ({ sessions }, q) => ({ session: await sessions.authorize(q.context, q.id("appId"), q.object()) }),
  },
  {
    method: "POST",
    path: `${SESSION}/verify`,
    answer: ({ sessions }, q) => sessions.verify(q.context, q.id("appId"), q.object()),
  },
  {
    method: "PUT",
    path: SESSION,
    stateless: true,
    answer: async ({ sessions }, q) => ({
      session: await sessions.setSessionLocale(q.context, q.id("appId"), q.object(flatShape(["locale"]))["locale"]),
    }),
  },
  {
    method: "DELETE",
    path: SESSION,
    stateless: true,
    answer: async ({ sessions }, q) => ({ session: await sessions.logoutAppUser(q.context, q.id("appId")) }),
  },
];
