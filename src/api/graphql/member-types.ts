/** GraphQL types of organizations, members and invitations: only declarations. */
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { User } from "../../operations/access/people.js";
import type { Invitation } from "../../operations/members/invitation-rows.js";
import type { Role } from "../../rules/roles.js";
import { UserType } from "./app-types.js";
import { DateTime, RoleEnum } from "./leaf-types.js";

@ObjectType("Organization", { description: "Group of people who share apps." })
export class OrganizationType {
  @Field(() => Int, { description: "ID of the organization." }) id: number;
  @Field(() => String, { description: "Name of the organization." }) name: string;
  @Field(() => RoleEnum, { description: "Role of the caller; administrators of the service act as owners." })
  role: Role;
}

@ObjectType("Member", { description: "Person with a role in an organization or on an app." })
export class MemberType {
  @Field(() => UserType, { description: "The person." }) user: User;
  @Field(() => RoleEnum, { description: "Role of the person." }) role: Role;
  @Field(() => DateTime, { nullable: true, description: "Time when the person was last seen; null if never." })
  lastSeenAt: string | null;
  @Field(() => DateTime, { description: "Time of the last change of the role." }) updatedAt: string;
}

@ObjectType("Invitation", { description: "Pending invitation to an organization or an app." })
export class InvitationType {
  @Field(() => Int, { description: "ID of the invitation." }) id: number;
  @Field(() => Int, { description: "ID of the organization." }) organizationId: number;
  @Field(() => Int, { nullable: true, description: "ID of the app; null for the whole organization." })
  appId: number | null;
  @Field(() => String, { description: "E-mail address of the invited person." }) email: string;
  @Field(() => RoleEnum, { description: "Role that the invitation gives." }) role: Role;
  @Field(() => Int, { nullable: true, description: "ID of the person who made it; null if no person did." })
  createdBy: number | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "State for `ifUpdatedAt`; equals `createdAt`." }) updatedAt: string;
  @Field(() => DateTime, { description: "Time when the link expires." }) expiresAt: string;
}

@ObjectType("NewInvitation", { description: "Created invitation with its link." })
export class NewInvitationType {
  @Field(() => InvitationType, { description: "The invitation." }) invitation: Invitation;
  @Field(() => String, { description: "Link that accepts the invitation once; returned only here." }) link: string;
}

@ObjectType("ResetLink", { description: "Link with which a person sets a new passphrase." })
export class PassphraseResetLinkType {
  @Field(() => String, { description: "The link, valid once; returned only here." }) link: string;
  @Field(() => DateTime, { description: "Time when the link expires." }) expiresAt: string;
}

@InputType("CreateInvitationInput", { description: "Properties of a new invitation." })
export class CreateInvitationInput {
  @Field(() => String, { nullable: true, description: "E-mail address of the person; required." }) email?: unknown;
  @Field(() => RoleEnum, { nullable: true, description: "Role that the invitation gives; required." }) role?: unknown;
  @Field(() => Int, { nullable: true, description: "ID of the app; null for the whole organization." }) appId?: unknown;
  @Field(() => Int, { nullable: true, description: "Hours until the link expires, 1 to 720; 168 by default." })
  expiresInHours?: unknown;
}
