/** REST routes of people, editors and tokens: entries for the route table in rest/routes.ts. */
import type { Administrator } from "../../operations/members/administrators.js";
import type { Editor } from "../../operations/members/editors.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const APP_ROUTE = "/v1/apps/:appId";

const EDITOR_SHAPE = createFlatShape(["userId"]);
const NEW_TOKEN_SHAPE = createFlatShape(
  ["kind", "name", "userId", "scopes", "expiresAt"],
  ["id", "createdAt", "updatedAt", "lastUsedAt", "lastUsedAddress"],
);

const replyWithAdministrators = (request: RestRequest, administrators: Administrator[]) =>
  request.setListTag(administrators, { administrators });
const replyWithEditors = (request: RestRequest, editors: Editor[]) => request.setListTag(editors, { editors });

export const peopleRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/admin/users",
    successStatus: 201,
    handle: ({ apps }, request) => apps.createUser(request.context, request.bodyFields()),
  },
  {
    method: "GET",
    path: "/v1/admin/administrators",
    handle: async ({ administrators }, request) =>
      replyWithAdministrators(request, await administrators.administrators(request.context)),
  },
  {
    method: "PUT",
    path: "/v1/admin/administrators/:userId",
    hasNoVersion: true,
    handle: async ({ administrators }, request) => {
      request.ignoreBodyFields(["id", "organizationId", "firstName", "lastName", "email", "updatedAt"]);
      return replyWithAdministrators(
        request,
        await administrators.addAdministrator(request.context, request.pathId("userId")),
      );
    },
  },
  {
    method: "DELETE",
    path: "/v1/admin/administrators/:userId",
    handle: async ({ administrators }, request) =>
      replyWithAdministrators(
        request,
        await administrators.removeAdministrator(
          request.context,
          request.pathId("userId"),
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/editors`,
    handle: async ({ apps }, request) =>
      replyWithEditors(request, await apps.editors(request.context, request.pathId("appId"))),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/editors`,
    handle: async ({ apps }, request) =>
      replyWithEditors(
        request,
        await apps.addEditor(request.context, request.pathId("appId"), request.bodyFields(EDITOR_SHAPE)["userId"]),
      ),
  },
  {
    method: "DELETE",
    path: `${APP_ROUTE}/editors`,
    handle: async ({ apps }, request) =>
      replyWithEditors(
        request,
        await apps.removeEditor(
          request.context,
          request.pathId("appId"),
          request.bodyFields(EDITOR_SHAPE)["userId"],
          request.readExpectedVersions(),
        ),
      ),
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/tokens`,
    handle: async (resolvers, request) => {
      const tokens = await resolvers.tokens.tokens(request.context, request.pathId("appId"));
      return request.setListTag(tokens, { tokens });
    },
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/tokens`,
    successStatus: 201,
    handle: ({ tokens }, request) =>
      tokens.createToken(request.context, request.pathId("appId"), request.bodyFields(NEW_TOKEN_SHAPE)),
  },
  {
    method: "DELETE",
    path: `${APP_ROUTE}/tokens/:tokenId`,
    handle: async ({ tokens }, request) => {
      await tokens.revokeToken(
        request.context,
        request.pathId("appId"),
        request.pathId("tokenId"),
        request.readExpectedVersions(),
      );
      return { status: "TOKEN_REVOKED" };
    },
  },
];
