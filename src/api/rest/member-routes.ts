/** Organizations, members and invitations over REST: rows of the facade's table (contract, section 7). */
import { flat } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const ORGANIZATION = "/v1/organizations/:organizationId";
const APP = "/v1/apps/:appId";

const ORGANIZATION_SHAPE = flat(["name"], ["id", "role"]);
const MEMBER = flat(["role"], ["user", "lastSeenAt"]);
const INVITATION = flat(
  ["email", "role", "appId", "expiresInHours"],
  ["id", "organizationId", "createdBy", "createdAt", "expiresAt"],
);

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
    path: `${ORGANIZATION}/members`,
    answer: async ({ members }, q) => ({
      members: await members.organizationMembers(q.context, q.id("organizationId")),
    }),
  },
  {
    method: "PUT",
    path: `${ORGANIZATION}/members/:userId`,
    stateless: true,
    answer: async ({ members }, q) => {
      const { role } = q.object(MEMBER);
      return {
        members: await members.setOrganizationMember(q.context, q.id("organizationId"), q.id("userId"), role),
      };
    },
  },
  {
    method: "DELETE",
    path: `${ORGANIZATION}/members/:userId`,
    stateless: true,
    answer: async ({ members }, q) => ({
      members: await members.removeOrganizationMember(q.context, q.id("organizationId"), q.id("userId")),
    }),
  },
  {
    method: "POST",
    path: `${ORGANIZATION}/members/:userId/reset-link`,
    http: 201,
    answer: ({ members }, q) => members.createResetLink(q.context, q.id("organizationId"), q.id("userId")),
  },
  {
    method: "GET",
    path: `${APP}/members`,
    answer: async ({ members }, q) => ({ members: await members.appMembers(q.context, q.id("appId")) }),
  },
  {
    method: "PUT",
    path: `${APP}/members/:userId`,
    stateless: true,
    answer: async ({ members }, q) => {
      const { role } = q.object(MEMBER);
      return { members: await members.setAppMember(q.context, q.id("appId"), q.id("userId"), role) };
    },
  },
  {
    method: "DELETE",
    path: `${APP}/members/:userId`,
    stateless: true,
    answer: async ({ members }, q) => ({
      members: await members.removeAppMember(q.context, q.id("appId"), q.id("userId")),
    }),
  },
  {
    method: "GET",
    path: `${ORGANIZATION}/invitations`,
    answer: async ({ members }, q) => ({
      invitations: await members.invitations(q.context, q.id("organizationId"), q.number("appId")),
    }),
  },
  {
    method: "POST",
    path: `${ORGANIZATION}/invitations`,
    http: 201,
    answer: ({ members }, q) => members.createInvitation(q.context, q.id("organizationId"), q.object(INVITATION)),
  },
  {
    method: "DELETE",
    path: `${ORGANIZATION}/invitations/:invitationId`,
    stateless: true,
    answer: async ({ members }, q) => {
      await members.revokeInvitation(q.context, q.id("organizationId"), q.id("invitationId"));
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
