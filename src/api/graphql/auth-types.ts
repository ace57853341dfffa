/** GraphQL types of people's accounts: only declarations. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { User } from "../../operations/access/people.js";
import type { AccessLogEntry } from "../../operations/accounts/access-events.js";
import type { Membership } from "../../operations/accounts/caller-access.js";
import { UserType } from "./app-types.js";
import { DateTime } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

@ObjectType("Membership", { description: "Organization or app in which a person has a role." })
export class MembershipType {
  @Field(() => Int, { description: "ID of the organization or app." }) id: number;
  @Field(() => String, { description: "Name of the organization or app." }) name: string;
  @Field(() => String, { description: "Role of the person." }) role: string;
}

@ObjectType("AuthSession", { description: "Person behind the credential of the request, with their roles." })
export class AuthSessionType {
  @Field(() => UserType, { description: "The person." }) user: User;
  @Field(() => [MembershipType], { description: "Organizations in which the person has a role." })
  organizations: Membership[];
  @Field(() => [MembershipType], { description: "Apps in which the person has a role." }) apps: Membership[];
  @Field(() => DateTime, {
    nullable: true,
    description: "Time when the credential expires; null if it does not expire.",
  })
  expiresAt: string | null;
}

@ObjectType("PersonSession", { description: "Session of a person's sign-in." })
export class PersonSessionType {
  @Field(() => Int, { description: "ID of the session." }) id: number;
  @Field(() => String, { description: "Browser and operating system that signed in." }) device: string;
  @Field(() => String, { nullable: true, description: "Network address of the last use; null if unknown." })
  address: string | null;
  @Field(() => DateTime, { description: "Time of the sign-in." }) createdAt: string;
  @Field(() => DateTime, { description: "State for `ifUpdatedAt`; equals `createdAt`." }) updatedAt: string;
  @Field(() => DateTime, { description: "Time of the last use, to the minute." }) lastUsedAt: string;
  @Field(() => DateTime, { description: "Time when the session expires unless it is used again." }) expiresAt: string;
  @Field(() => Boolean, { description: "True for the session of this request." }) isCurrent: boolean;
}

@InputType("UpdateAccountInput", { description: "Properties of the caller's own account to change." })
export class UpdateAccountInput {
  @Field(() => String, { nullable: true, description: "First name; null to keep it." }) firstName?: unknown;
  @Field(() => String, { nullable: true, description: "Last name; null to keep it." }) lastName?: unknown;
  @Field(() => String, { nullable: true, description: "New passphrase; null to keep it." }) passphrase?: unknown;
  @Field(() => String, { nullable: true, description: "Current passphrase; required for a new one if one is set." })
  currentPassphrase?: unknown;
}

@ObjectType("Passkey", { description: "Passkey of a person, without its key." })
export class PasskeyType {
  @Field(() => Int, { description: "ID of the passkey." }) id: number;
  @Field(() => String, { description: "Name that the person gave it." }) name: string;
  @Field(() => DateTime, { description: "Time of registration." }) createdAt: string;
  @Field(() => DateTime, { description: "State for `ifUpdatedAt`; equals `createdAt`." }) updatedAt: string;
  @Field(() => DateTime, { nullable: true, description: "Time of the last sign-in with it; null if there was none." })
  lastUsedAt: string | null;
}

@ObjectType("AuthIdentity", { description: "Identity at an OpenID provider that signs in to an account." })
export class AuthIdentityType {
  @Field(() => Int, { description: "ID of the identity." }) id: number;
  @Field(() => String, { description: "ID of the provider in the configuration." }) provider: string;
  @Field(() => String, { description: "Issuer of the identity." }) issuer: string;
  @Field(() => DateTime, { description: "Time when the identity was linked." }) createdAt: string;
  @Field(() => DateTime, { description: "State for `ifUpdatedAt`; equals `createdAt`." }) updatedAt: string;
  @Field(() => DateTime, { nullable: true, description: "Time of the last sign-in with it; null if there was none." })
  lastUsedAt: string | null;
}

@ObjectType("AccessEntry", { description: "Entry of the audit log of access to an organization." })
export class AccessLogEntryType {
  @Field(() => Int, { description: "ID of the entry." }) id: number;
  @Field(() => String, { description: "Operation, for example person.signIn." }) type: string;
  @Field(() => Int, { nullable: true, description: "ID of the organization; null for an operation on an account." })
  organizationId: number | null;
  @Field(() => Int, { nullable: true, description: "ID of the person who performed the operation; null if unknown." })
  userId: number | null;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the person that the operation is about; null if there is none.",
  })
  subjectId: number | null;
  @Field(() => String, { nullable: true, description: "Network address of the request; null if unknown." })
  address: string | null;
  @Field(() => GraphQLJSON, {
    description: "Details of the operation, an object with names, roles and IDs.",
    deprecationReason: "Use `details`.",
  })
  data: unknown;
  @Field(() => DateTime, { description: "Time of the operation." }) createdAt: string;
}

@ObjectType("AccessPagination", { description: "Position of a page in the audit log of access." })
class AccessPaginationType {
  @Field(() => Boolean, { description: "True if there is a next page." }) hasMore: boolean;
  @Field(() => String, { nullable: true, description: "Value of `cursor` for the next page; null on the last page." })
  nextCursor?: string;
}

@ObjectType("AccessList", { implements: ListPageType, description: "Page of the audit log of access." })
export class AccessLogListType {
  @PageItemsField(() => [AccessLogEntryType], "Entries on this page.") entries: AccessLogEntry[];
  @Field(() => AccessPaginationType, {
    ...DEPRECATED_IN_FAVOR_OF_PAGE,
    description: "Position of this page in the log.",
  })
  pagination: AccessPaginationType;
}
