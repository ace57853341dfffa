/** REST routes of people, editors and tokens: entries for the route table in rest/routes.ts. */
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

const administratorsOf = (request: RestRequest, administrators: Administrator[]) =>
  request.setListTag(administrators, { administrators });
const editorsOf = (request: RestRequest, editors: Editor[]) => request.setListTag(editors, { editors });

export const peopleRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/admin/users",
    successStatus: 201,
    handle: ({ apps }, request) => apps.createUser(request.context, request.object()),
  },
  {
    method: "GET",
    path: "/v1/admin/administrators",
    handle: async ({ administrators }, request) =>
      administratorsOf(request, await administrators.administrators(request.context)),
  },
  {
    method: "PUT",
    path: "/v1/admin/administrators/:userId",
    hasNoVersion: true,
    handle: async ({ administrators }, request) =>
      administratorsOf(request, await administrators.addAdministrator(request.context, request.id("userId"))),
  },
  {
    method: "DELETE",
    path: "/v1/admin/administrators/:userId",
    handle: async ({ administrators }, request) =>
      administratorsOf(
        request,
        await administrators.removeAdministrator(request.context, request.id("userId"), request.ifMatch()),
      ),
  },
  {
    method: "GET",
    path: `${APP}/editors`,
    handle: async ({ apps }, request) => editorsOf(request, await apps.editors(request.context, request.id("appId"))),
  },
  {
    method: "POST",
    path: `${APP}/editors`,
    handle: async ({ apps }, request) =>
      editorsOf(
        request,
        await apps.addEditor(request.context, request.id("appId"), request.object(EDITOR_SHAPE)["userId"]),
      ),
  },
  {
    method: "DELETE",
    path: `${APP}/editors`,
    handle: async ({ apps }, request) =>
      editorsOf(
        request,
        await apps.removeEditor(
          request.context,
          request.id("appId"),
          request.object(EDITOR_SHAPE)["userId"],
          request.ifMatch(),
        ),
      ),
  },
  {
    method: "GET",
    path: `${APP}/tokens`,
    handle: async (resolvers, request) => {
      const tokens = await resolvers.tokens.tokens(request.context, request.id("appId"));
      return request.setListTag(tokens, { tokens });
    },
  },
  {
    method: "POST",
    path: `${APP}/tokens`,
    successStatus: 201,
    handle: ({ tokens }, request) =>
      tokens.createToken(request.context, request.id("appId"), request.object(NEW_TOKEN)),
  },
  {
    method: "DELETE",
    path: `${APP}/tokens/:tokenId`,
    handle: async ({ tokens }, request) => {
      await tokens.revokeToken(request.context, request.id("appId"), request.id("tokenId"), request.ifMatch());
      return { status: "TOKEN_REVOKED" };
    },
  },
];
