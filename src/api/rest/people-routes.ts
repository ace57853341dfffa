/** People, editors and tokens over REST: rows of the facade's table. */
import { flat } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

const NEW_USER = flat(["firstName", "lastName", "email", "organizationId"], ["id"]);
const EDITOR = flat(["userId"]);
const NEW_TOKEN = flat(
  ["kind", "name", "userId", "scopes", "expiresAt"],
  ["id", "createdAt", "lastUsedAt", "lastUsedAddress"],
);

export const peopleRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/admin/users",
    http: 201,
    answer: ({ apps }, q) => apps.createUser(q.context, q.object(NEW_USER)),
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
      editors: await apps.addEditor(q.context, q.id("appId"), q.object(EDITOR)["userId"]),
    }),
  },
  {
    method: "DELETE",
    path: `${APP}/editors`,
    stateless: true,
    answer: async ({ apps }, q) => ({
      editors: await apps.removeEditor(q.context, q.id("appId"), q.object(EDITOR)["userId"]),
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
    answer: ({ tokens }, q) => tokens.createToken(q.context, q.id("appId"), q.object(NEW_TOKEN)),
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
