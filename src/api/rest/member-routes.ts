/** REST routes of organizations, members and invitations (contract, section 7): entries for the route table in rest/routes.ts. */
import { type Member, toListItemVersions } from "../../operations/members/members.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ORGANIZATION_PATH = "/v1/organizations/:organizationId";
const APP_ROUTE = "/v1/apps/:appId";

const ORGANIZATION_SHAPE = createFlatShape(["name"], ["id", "role"]);
const MEMBER_SHAPE = createFlatShape(["role"], ["user", "lastSeenAt", "updatedAt"]);
const INVITATION_SHAPE = createFlatShape(
  ["email", "role", "appId", "expiresInHours"],
  ["id", "organizationId", "createdBy", "createdAt", "updatedAt", "expiresAt"],
);

const replyWithMembers = (request: RestRequest, members: Member[]) =>
  request.setListTag(toListItemVersions(members), { members });

export const memberRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/organizations",
    handle: async ({ members }, request) => ({ organizations: await members.organizations(request.context) }),
  },
  {
    method: "POST",
    path: "/v1/organizations",
    successStatus: 201,
    handle: async ({ members }, request) => ({
      organization: await members.createOrganization(request.context, request.bodyFields(ORGANIZATION_SHAPE)["name"]),
    }),
  },
  {
    method: "GET",
    path: `${ORGANIZATION_PATH}/members`,
    handle: async ({ members }, request) =>
      replyWithMembers(request, await members.organizationMembers(request.context, request.pathId("organizationId"))),
  },
  {
    method: "PUT",
    path: `${ORGANIZATION_PATH}/members/:userId`,
    handle: async ({ members }, request) => {
      const { role } = request.bodyFields(MEMBER_SHAPE);
      const ids = [request.pathId("organizationId"), request.pathId("userId")] as const;
      return replyWithMembers(
        request,
        await members.setOrganizationMember(request.context, ...ids, role, request.readExpectedVersions()),
      );
    },
  },
  {
    method: "DELETE",
    path: `${ORGANIZATION_PATH}/members/:userId`,
    handle: async ({ members }, request) => {
      const ids = [request.pathId("organizationId"), request.pathId("userId")] as const;
      return replyWithMembers(
        request,
        await members.removeOrganizationMember(request.context, ...ids, request.readExpectedVersions()),
      );
    },
  },
  {
    method: "POST",
    path: `${ORGANIZATION_PATH}/members/:userId/reset-link`,
    successStatus: 201,
    handle: ({ members }, request) =>
      members.createResetLink(request.context, request.pathId("organizationId"), request.pathId("userId")),
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/members`,
    handle: async ({ members }, request) =>
      replyWithMembers(request, await members.appMembers(request.context, request.pathId("appId"))),
  },
  {
    method: "PUT",
    path: `${APP_ROUTE}/members/:userId`,
    handle: async ({ members }, request) => {
      const { role } = request.bodyFields(MEMBER_SHAPE);
      const ids = [request.pathId("appId"), request.pathId("userId")] as const;
      return replyWithMembers(
        request,
        await members.setAppMember(request.context, ...ids, role, request.readExpectedVersions()),
      );
    },
  },
  {
    method: "DELETE",
    path: `${APP_ROUTE}/members/:userId`,
    handle: async ({ members }, request) => {
      const ids = [request.pathId("appId"), request.pathId("userId")] as const;
      return replyWithMembers(
        request,
        await members.removeAppMember(request.context, ...ids, request.readExpectedVersions()),
      );
    },
  },
  {
    method: "GET",
    path: `${ORGANIZATION_PATH}/invitations`,
    handle: async ({ members }, request) => {
      const invitations = await members.invitations(
        request.context,
        request.pathId("organizationId"),
        request.queryNumber("appId"),
      );
      return request.setListTag(invitations, { invitations });
    },
  },
  {
    method: "POST",
    path: `${ORGANIZATION_PATH}/invitations`,
    successStatus: 201,
    handle: ({ members }, request) =>
      members.createInvitation(request.context, request.pathId("organizationId"), request.bodyFields(INVITATION_SHAPE)),
  },
  {
    method: "DELETE",
    path: `${ORGANIZATION_PATH}/invitations/:invitationId`,
    handle: async ({ members }, request) => {
      await members.revokeInvitation(
        request.context,
        request.pathId("organizationId"),
        request.pathId("invitationId"),
        request.readExpectedVersions(),
      );
      return { status: "INVITATION_REVOKED" };
    },
  },
  {
    method: "POST",
    path: "/v1/auth/invitations/accept",
    allowsAnonymous: true,
    isForAnonymous: true,
    handle: async ({ members }, request) => {
      const { user, expiresAt } = await members.accept(request.context, request.bodyFields());
      return { user, expiresAt };
    },
  },
];
