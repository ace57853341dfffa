/** Shapes of apps and people in the GraphQL schema, and what a caller may give of them. No behaviour. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { User } from "../../operations/access/people.js";
import { AppStructure, DateTime } from "./leaf-types.js";

@ObjectType("App", { description: "An app without its settings." })
export class AppType {
  @Field(() => Int) id: number;
  @Field(() => Int, { nullable: true, description: "null, as hooks and dependencies, for a page's user." })
  organizationId: number | null;
  @Field(() => String) name: string;
  @Field(() => Boolean) isPublished: boolean;
  @Field(() => GraphQLSafeInt, { nullable: true }) startingPageId: number | null;
  @Field(() => AppStructure, { nullable: true }) hooks: unknown;
  @Field(() => Boolean) isTemplate: boolean;
  @Field(() => AppStructure, { nullable: true }) dependencies: unknown;
  @Field(() => String, { nullable: true }) icon: string | null;
  @Field(() => Boolean) isSystemTemplate: boolean;
  @Field(() => Boolean) isHidden: boolean;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("AppSnapshot", { description: "The app's own fields as they were; null also for one that was not kept." })
export class AppSnapshotType {
  @Field(() => String, { nullable: true }) name: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) startingPageId: unknown;
  @Field(() => AppStructure, { nullable: true }) hooks: unknown;
  @Field(() => Boolean, { nullable: true }) isTemplate: unknown;
  @Field(() => AppStructure, { nullable: true }) dependencies: unknown;
  @Field(() => String, { nullable: true }) icon: unknown;
}

@InputType("CreateAppInput")
export class CreateAppInput {
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => Int, { nullable: true, description: "The first one unless given." }) organizationId?: unknown;
}

@InputType("UpdateAppInput", { description: "Omitted properties stay as they are." })
export class UpdateAppInput {
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) startingPageId?: unknown;
  @Field(() => AppStructure, { nullable: true }) hooks?: unknown;
  @Field(() => Boolean, { nullable: true }) isTemplate?: unknown;
  @Field(() => AppStructure, { nullable: true }) dependencies?: unknown;
  @Field(() => String, { nullable: true }) icon?: unknown;
  @Field(() => Boolean, { nullable: true, description: "Of administrators." }) isSystemTemplate?: unknown;
  @Field(() => Boolean, { nullable: true, description: "Of administrators." }) isHidden?: unknown;
}

@InputType("AdministrateAppInput", { description: "Omitted properties stay as they are." })
export class AdministrateAppInput extends UpdateAppInput {
  @Field(() => GraphQLJSON, { nullable: true, description: "An object of keys; protected ones are ignored." })
  settings?: unknown;
}

@ObjectType("User")
export class UserType {
  @Field(() => Int) id: number;
  @Field(() => Int) organizationId: number;
  @Field(() => String) firstName: string;
  @Field(() => String) lastName: string;
  @Field(() => String) email: string;
}

@ObjectType("NewUser")
export class NewUserType {
  @Field(() => UserType) user: User;
  @Field(() => String, { description: "The person's session, in this answer and nowhere else." }) token: string;
}

@InputType("CreateUserInput")
export class CreateUserInput {
  @Field(() => String, { nullable: true }) firstName?: unknown;
  @Field(() => String, { nullable: true }) lastName?: unknown;
  @Field(() => String, { nullable: true }) email?: unknown;
  @Field(() => Int, { nullable: true, description: "The first one unless given." }) organizationId?: unknown;
}
