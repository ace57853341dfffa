/**
 * Organizations, members and invitations over GraphQL. A person without an account can accept an invitation over REST only, because GraphQL
 * requires a credential.
 */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { User } from "../../operations/access/people.js";
import type { AccountModules } from "../../operations/accounts/people-accounts.js";
import type { Invitation } from "../../operations/members/invitation-rows.js";
import {
  type AcceptedInvitation,
  createInvitationNotFoundError,
  type Invitations,
} from "../../operations/members/invitations.js";
import type { Member, Members, Organization } from "../../operations/members/members.js";
import { type Caller, mayPerformOnOrganization, type Operation } from "../../rules/access.js";
import { parseOptionalId } from "../../rules/fields.js";
import type { Role, RoleScope } from "../../rules/roles.js";
import type { RequestContext } from "../context.js";
import { UserType } from "./app-types.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { RoleEnum } from "./leaf-types.js";
import {
  CreateInvitationInput,
  InvitationType,
  MemberType,
  NewInvitationType,
  OrganizationType,
  PassphraseResetLinkType,
} from "./member-types.js";

const OrganizationIdArgument = () => Arg("organizationId", () => Int, { description: "ID of the organization." });
const UserIdArgument = () => Arg("userId", () => Int, { description: "ID of the person." });

@Resolver()
export class MemberResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: { members: Members; invitations: Invitations; people: AccountModules },
  ) {}

  private async requireOrganizationAccess(
    context: RequestContext,
    operation: Operation,
    id: number,
  ): Promise<{ caller: Caller; scope: RoleScope }> {
    const { caller, organizationId } = await this.accessChecks.requireOrganizationAccess(context, operation, id);
    return { caller: addAddress(caller, context), scope: { organizationId, appId: null } };
  }

  private async requireAppAccess(context: RequestContext, operation: Operation, appId: number) {
    const caller = await this.accessChecks.requireAppAccess(context, operation, appId);
    return { caller, scope: await this.service.members.requireScopeOfApp(appId) };
  }

  /** Checks that the caller has the right to invite people: to the organization, or to the app if `appId` is set. */
  private async requireInvitationAccess(context: RequestContext, organizationId: number, appId: number | null) {
    const { caller } = context;
    const isManager = caller !== null && mayPerformOnOrganization(caller, "manageOrganization", organizationId);
    if (appId === null || isManager) {
      const organizationAccess = await this.requireOrganizationAccess(context, "manageOrganization", organizationId);
      if (appId === null) return organizationAccess;
      const scope = await this.service.members.findScopeInOrganization(organizationId, appId);
      if (!scope) throw new ActionError("APP_NOT_FOUND", `the organization has no app with the ID ${appId}`);
      return { caller: organizationAccess.caller, scope };
    }
    const appAccess = await this.requireAppAccess(context, "manageMembers", appId);
    if (appAccess.scope.organizationId !== organizationId) throw new ActionError("FORBIDDEN");
    return appAccess;
  }

  @Query(() => [OrganizationType], {
    description:
      "Lists the organizations in which the caller has a role; for an administrator of the service, all organizations. The list has at most 1,000.",
  })
  async organizations(@Ctx() context: RequestContext): Promise<(Organization & { role: Role })[]> {
    return this.service.members.listOrganizations(this.accessChecks.requireServiceAccess(context, "listOrganizations"));
  }

  @Mutation(() => OrganizationType, {
    description:
      "Creates an organization, of which the caller becomes the owner. The caller must be an administrator of the service.",
  })
  async createOrganization(
    @Ctx() context: RequestContext,
    @Arg("name", () => String, { nullable: true, description: "Name of the organization; required." }) name?: unknown,
  ): Promise<Organization & { role: Role }> {
    const caller = addAddress(this.accessChecks.requireServiceAccess(context, "createOrganization"), context);
    return { ...(await this.service.members.createOrganization(caller, name)), role: "owner" };
  }

  @Query(() => [MemberType], { description: "Lists the people with a role in the organization." })
  async organizationMembers(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
  ): Promise<Member[]> {
    const { scope } = await this.requireOrganizationAccess(context, "readOrganization", organizationId);
    return this.service.members.list(scope);
  }

  @Mutation(() => [MemberType], {
    description: "Sets the role of a person in the organization, and replaces the current one. Returns all members.",
  })
  async setOrganizationMember(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
    @UserIdArgument() userId: number,
    @Arg("role", () => RoleEnum, { nullable: true, description: "Role of the person; required." }) role?: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Member[]> {
    const { caller, scope } = await this.requireOrganizationAccess(context, "manageOrganization", organizationId);
    await this.service.members.set(
      caller,
      { scope, personId: userId, precondition: toExpectedVersions(ifUpdatedAt) },
      role,
    );
    return this.service.members.list(scope);
  }

  @Mutation(() => [MemberType], {
    description:
      "Removes a person's roles in an organization and on its apps. Revokes the person's tokens for these apps. If the person then has no role in any organization or app, also revokes the person's sessions and editor tokens. An administrator of the service keeps them. Returns the remaining members.",
  })
  async removeOrganizationMember(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
    @UserIdArgument() userId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Member[]> {
    const { caller, scope } = await this.requireOrganizationAccess(context, "manageOrganization", organizationId);
    await this.service.members.remove(caller, {
      scope,
      personId: userId,
      precondition: toExpectedVersions(ifUpdatedAt),
    });
    return this.service.members.list(scope);
  }

  @Query(() => [MemberType], {
    description:
      "Lists the people who have a role on the app itself. Does not list people who only have a role on the organization of the app.",
  })
  async appMembers(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<Member[]> {
    const { scope } = await this.requireAppAccess(context, "readMembers", appId);
    return this.service.members.list(scope);
  }

  @Mutation(() => [MemberType], {
    description:
      "Gives a person of the organization a role on the app, which replaces the person's previous role on the app. Returns all members of the app.",
  })
  async setAppMember(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @UserIdArgument() userId: number,
    @Arg("role", () => RoleEnum, { nullable: true, description: "Role of the person; required." }) role?: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Member[]> {
    const { caller, scope } = await this.requireAppAccess(context, "manageMembers", appId);
    await this.service.members.set(
      caller,
      { scope, personId: userId, precondition: toExpectedVersions(ifUpdatedAt) },
      role,
    );
    return this.service.members.list(scope);
  }

  @Mutation(() => [MemberType], {
    description: "Removes a person's role on the app, and ends the tokens of the app that act as this person.",
  })
  async removeAppMember(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @UserIdArgument() userId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Member[]> {
    const { caller, scope } = await this.requireAppAccess(context, "manageMembers", appId);
    await this.service.members.remove(caller, {
      scope,
      personId: userId,
      precondition: toExpectedVersions(ifUpdatedAt),
    });
    return this.service.members.list(scope);
  }

  @Mutation(() => PassphraseResetLinkType, {
    description:
      "Creates a link with which a person sets a new passphrase. In each of the person's organizations, the caller must be owner or admin, and have a higher role than the person. A caller who is an administrator of the service needs no role. If the person is an administrator of the service, the request is rejected.",
  })
  async createResetLink(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
    @UserIdArgument() userId: number,
  ): Promise<PassphraseResetLinkType> {
    const { members, people } = this.service;
    const { caller } = await this.requireOrganizationAccess(context, "manageOrganization", organizationId);
    await members.requireMembership(organizationId, userId);
    const { link, expiresAt } = await people.accounts.createResetLink(userId, caller, (entityManager) =>
      members.requireHigherRole(entityManager, caller, userId),
    );
    return { link, expiresAt };
  }

  @Query(() => [InvitationType], { description: "Lists pending invitations, newest first." })
  async invitations(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
    @Arg("ofApp", () => Int, {
      nullable: true,
      description: "ID of the app whose invitations to return; all invitations of the organization by default.",
    })
    appId?: number | null,
  ): Promise<Invitation[]> {
    const { scope } = await this.requireInvitationAccess(context, organizationId, appId ?? null);
    return this.service.invitations.list(scope);
  }

  @Mutation(() => NewInvitationType, { description: "Invites a person by e-mail address; returns the link." })
  async createInvitation(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
    @Arg("data", () => CreateInvitationInput, { description: "Properties of the new invitation." }) data: unknown,
  ): Promise<NewInvitationType> {
    const fields = (data ?? {}) as Record<string, unknown>;
    const { appId: requestedAppId } = fields;
    const appId =
      Number.isSafeInteger(requestedAppId) && (requestedAppId as number) > 0 ? (requestedAppId as number) : null;
    const { caller, scope } = await this.requireInvitationAccess(context, organizationId, appId);
    parseOptionalId(requestedAppId, "appId");
    return this.service.invitations.create(caller, scope, fields);
  }

  @Mutation(() => Boolean, { description: "Revokes a pending invitation." })
  async revokeInvitation(
    @Ctx() context: RequestContext,
    @OrganizationIdArgument() organizationId: number,
    @Arg("id", () => Int, { description: "ID of the invitation." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    if (!context.caller) throw new ActionError("UNAUTHORIZED");
    const invitation = await this.service.invitations.find(organizationId, id);
    const { caller } = await this.requireInvitationAccess(context, organizationId, invitation?.appId ?? null);
    if (!invitation) throw createInvitationNotFoundError();
    await this.service.invitations.revoke(caller, invitation, toExpectedVersions(ifUpdatedAt));
    return true;
  }

  @Mutation(() => UserType, {
    description: "Accepts an invitation to the caller's own e-mail address, which adds its role to the account.",
  })
  async acceptInvitation(
    @Ctx() context: RequestContext,
    @Arg("token", () => String, { description: "Token from the fragment of the link." }) token: unknown,
  ): Promise<User> {
    this.accessChecks.requireServiceAccess(context, "manageOwnAccount");
    return (await this.accept(context, { token })).user;
  }

  /** Accepts an invitation from the body of a REST request. Works also for people without an account. */
  async accept(context: RequestContext, body: Record<string, unknown>): Promise<AcceptedInvitation> {
    const { caller, address, browser } = context;
    const acceptedInvitation = await this.service.invitations.accept(
      { caller, address, userAgent: browser?.userAgent },
      body,
    );
    if (acceptedInvitation.session) browser?.setSession(acceptedInvitation.session);
    return acceptedInvitation;
  }
}

const addAddress = (caller: Caller, { address }: RequestContext): Caller =>
  address === undefined ? caller : { ...caller, address };
