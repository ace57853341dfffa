/** Organizations, members and invitations over REST, as rows of the REST table (contract, section 7). */
import { type Member, statedMembers } from "../../operations/members/members.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const ORGANIZATION_PATH = "/v1/organizations/:organizationId";
const APP = "/v1/apps/:appId";

const ORGANIZATION_SHAPE = flatShape(["name"], ["id", "role"]);
const MEMBER_SHAPE = flatShape(["role"], ["user", "lastSeenAt", "updatedAt"]);
const INVITATION_SHAPE = flatShape(
  ["email", "role", "appId", "expiresInHours"],
  ["id", "organizationId", "createdBy", "createdAt", "updatedAt", "expiresAt"],
);

const membersOf = (q: RestRequest, members: Member[]) => q.ofList(statedMembers(members), { members });

export const memberRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/organizations",
    answer: async ({ members }, q) => ({ organizations: await members.organizations(q.context) }),
  },
  {
    method: "POST",
    path: "/v1/organizations",
    http: 201,
    answer: async ({ members }, q) => ({
      organization: await members.createOrganization(q.context, q.object(ORGANIZATION_SHAPE)["name"]),
    }),
  },
  {
    method: "GET",
    path: `${ORGANIZATION_PATH}/members`,
    answer: async ({ members }, q) =>
      membersOf(q, await members.organizationMembers(q.context, q.id("organizationId"))),
  },
  {
    method: "PUT",
    path: `${ORGANIZATION_PATH}/members/:userId`,
    answer: async ({ members }, q) => {
      const { role } = q.object(MEMBER_SHAPE);
      const ids = [q.id("organizationId"), q.id("userId")] as const;
      return membersOf(q, await members.setOrganizationMember(q.context, ...ids, role, q.ifMatch()));
    },
  },
  {
    method: "DELETE",
    path: `${ORGANIZATION_PATH}/members/:userId`,
    answer: async ({ members }, q) => {
      const ids = [q.id("organizationId"), q.id("userId")] as const;
      return membersOf(q, await members.removeOrganizationMember(q.context, ...ids, q.ifMatch()));
    },
  },
  {
    method: "POST",
    path: `${ORGANIZATION_PATH}/members/:userId/reset-link`,
    http: 201,
    answer: ({ members }, q) => members.createResetLink(q.context, q.id("organizationId"), q.id("userId")),
  },
  {
    method: "GET",
    path: `${APP}/members`,
    answer: async ({ members }, q) => membersOf(q, await members.appMembers(q.context, q.id("appId"))),
  },
  {
    method: "PUT",
    path: `${APP}/members/:userId`,
    answer: async ({ members }, q) => {
      const { role } = q.object(MEMBER_SHAPE);
      const ids = [q.id("appId"), q.id("userId")] as const;
      return membersOf(q, await members.setAppMember(q.context, ...ids, role, q.ifMatch()));
    },
  },
  {
    method: "DELETE",
    path: `${APP}/members/:userId`,
    answer: async ({ members }, q) => {
      const ids = [q.id("appId"), q.id("userId")] as const;
      return membersOf(q, await members.removeAppMember(q.context, ...ids, q.ifMatch()));
    },
  },
  {
    method: "GET",
    path: `${ORGANIZATION_PATH}/invitations`,
    answer: async ({ members }, q) => {
      const invitations = await members.invitations(q.context, q.id("organizationId"), q.number("appId"));
      return q.ofList(invitations, { invitations });
    },
  },
  {
    method: "POST",
    path: `${ORGANIZATION_PATH}/invitations`,
    http: 201,
    answer: ({ members }, q) => members.createInvitation(q.context, q.id("organizationId"), q.object(INVITATION_SHAPE)),
  },
  {
    method: "DELETE",
    path: `${ORGANIZATION_PATH}/invitations/:invitationId`,
    answer: async ({ members }, q) => {
      await members.revokeInvitation(q.context, q.id("organizationId"), q.id("invitationId"), q.ifMatch());
      return { status: "INVITATION_REVOKED" };
    },
  },
  {
    method: "POST",
    path: "/v1/auth/invitations/accept",
    open: true,
    isForAnonymous: true,
    answer: async ({ members }, q) => {
      const { user, expiresAt } = await members.accept(q.context, q.object());
      return { user, expiresAt };
    },
  },
];
