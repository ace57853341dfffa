/** People, editors and tokens over REST, as rows of the REST table. */
import type { Administrator } from "../../operations/members/administrators.js";
import type { Editor } from "../../operations/members/editors.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

const EDITOR_SHAPE = flatShape(["userId"]);
const NEW_TOKEN = flatShape(
  ["kind", "name", "userId", "scopes", "expiresAt"],
  ["id", "createdAt", "updatedAt", "lastUsedAt", "lastUsedAddress"],
);

const administratorsOf = (q: RestRequest, administrators: Administrator[]) =>
  q.ofList(administrators, { administrators });
const editorsOf = (q: RestRequest, editors: Editor[]) => q.ofList(editors, { editors });

export const peopleRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/admin/users",
    http: 201,
    answer: ({ apps }, q) => apps.createUser(q.context, q.object()),
  },
  {
    method: "GET",
    path: "/v1/admin/administrators",
    answer: async ({ administrators }, q) => administratorsOf(q, await administrators.administrators(q.context)),
  },
  {
    method: "PUT",
    path: "/v1/admin/administrators/:userId",
    stateless: true,
    answer: async ({ administrators }, q) =>
      administratorsOf(q, await administrators.addAdministrator(q.context, q.id("userId"))),
  },
  {
    method: "DELETE",
    path: "/v1/admin/administrators/:userId",
    answer: async ({ administrators }, q) =>
      administratorsOf(q, await administrators.removeAdministrator(q.context, q.id("userId"), q.ifMatch())),
  },
  {
    method: "GET",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) => editorsOf(q, await apps.editors(q.context, q.id("appId"))),
  },
  {
    method: "POST",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) =>
      editorsOf(q, await apps.addEditor(q.context, q.id("appId"), q.object(EDITOR_SHAPE)["userId"])),
  },
  {
    method: "DELETE",
    path: `${APP}/editors`,
    answer: async ({ apps }, q) =>
      editorsOf(q, await apps.removeEditor(q.context, q.id("appId"), q.object(EDITOR_SHAPE)["userId"], q.ifMatch())),
  },
  {
    method: "GET",
    path: `${APP}/tokens`,
    answer: async (resolvers, q) => {
      const tokens = await resolvers.tokens.tokens(q.context, q.id("appId"));
      return q.ofList(tokens, { tokens });
    },
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
    answer: async ({ tokens }, q) => {
      await tokens.revokeToken(q.context, q.id("appId"), q.id("tokenId"), q.ifMatch());
      return { status: "TOKEN_REVOKED" };
    },
  },
];
