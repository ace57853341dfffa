/** People, editors and tokens over REST: rows of the facade's table. */
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

export const peopleRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/admin/users",
    http: 201,
    answer: ({ apps }, q) => apps.createUser(q.context, q.object()),
  },
  {
    method: "GET",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) => ({ editors: await apps.editors(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) => ({
      editors: await apps.addEditor(q.context, q.id("appId"), q.object()["userId"]),
    }),
  },
  {
    method: "DELETE",
    path: `${APP}/editors`,
    stateless: true,
    answer: async ({ apps }, q) => ({
      editors: await apps.removeEditor(q.context, q.id("appId"), q.object()["userId"]),
    }),
  },
  {
    method: "GET",
    path: `${APP}/tokens`,
    answer: async ({ tokens }, q) => ({ tokens: await tokens.tokens(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/tokens`,
    http: 201,
    answer: ({ tokens }, q) => tokens.createToken(q.context, q.id("appId"), q.object()),
  },
  {
    method: "DELETE",
    path: `${APP}/tokens/:tokenId`,
    stateless: true,
    answer: async ({ tokens }, q) => {
      await tokens.revokeToken(q.context, q.id("appId"), q.id("tokenId"));
      return { status: "TOKEN_REVOKED" };
    },
  },
];
