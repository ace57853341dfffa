/** GraphQL types of apps and people, and their inputs: only declarations. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { User } from "../../operations/access/people.js";
import { AppDefinedJsonScalar, DateTime } from "./leaf-types.js";

@ObjectType("App", { description: "App without its settings." })
export class AppType {
  @Field(() => Int, { description: "ID of the app." }) id: number;
  @Field(() => Int, {
    nullable: true,
    description:
      "ID of the organization that owns the app; null, like `hooks` and `dependencies`, for the user of a page.",
  })
  organizationId: number | null;
  @Field(() => String, { description: "Name of the app." }) name: string;
  @Field(() => Boolean, { description: "True if the app is published." }) isPublished: boolean;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the page that opens first, stored unchanged; null if none is set.",
  })
  startingPageId: number | null;
  @Field(() => AppDefinedJsonScalar, {
    nullable: true,
    description: "Hooks of the app, stored unchanged; null if there are none or the caller is the user of a page.",
  })
  hooks: unknown;
  @Field(() => Boolean, { description: "True if the app is a template." }) isTemplate: boolean;
  @Field(() => AppDefinedJsonScalar, {
    nullable: true,
    description:
      "Dependencies of the app, stored unchanged; null if there are none or the caller is the user of a page.",
  })
  dependencies: unknown;
  @Field(() => String, { nullable: true, description: "Icon of the app; null if none is set." }) icon: string | null;
  @Field(() => Boolean, { description: "True if the app is a template of the system." }) isSystemTemplate: boolean;
  @Field(() => Boolean, { description: "True if the app is hidden." }) isHidden: boolean;
  @Field(() => Boolean, { description: "True if a publication must state that the tests have passed." })
  requiresTests: boolean;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("AppSnapshot", {
  description: "Fields of an app at the time of a snapshot; null also for fields that the snapshot does not contain.",
})
export class AppSnapshotType {
  @Field(() => String, { nullable: true, description: "Name of the app." }) name: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the page that opens first, stored unchanged; null if none was set.",
  })
  startingPageId: unknown;
  @Field(() => AppDefinedJsonScalar, { nullable: true, description: "Hooks of the app; null if there were none." })
  hooks: unknown;
  @Field(() => Boolean, { nullable: true, description: "True if the app was a template." }) isTemplate: unknown;
  @Field(() => AppDefinedJsonScalar, {
    nullable: true,
    description: "Dependencies of the app; null if there were none.",
  })
  dependencies: unknown;
  @Field(() => String, { nullable: true, description: "Icon of the app; null if none was set." }) icon: unknown;
}

@InputType("CreateAppInput", { description: "Properties of a new app." })
export class CreateAppInput {
  @Field(() => String, { nullable: true, description: "Name of the app; required." }) name?: unknown;
  @Field(() => Int, {
    nullable: true,
    description:
      "ID of the organization that owns the app. By default, the organization with the lowest ID that the caller administers.",
  })
  organizationId?: unknown;
}

@InputType("UpdateAppInput", { description: "Changes to an app; omitted properties keep their values." })
export class UpdateAppInput {
  @Field(() => String, { nullable: true, description: "Name of the app." }) name?: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the page that opens first, stored unchanged; null for none.",
  })
  startingPageId?: unknown;
  @Field(() => AppDefinedJsonScalar, {
    nullable: true,
    description: "Hooks of the app, stored unchanged; null for none.",
  })
  hooks?: unknown;
  @Field(() => Boolean, { nullable: true, description: "True if the app is a template." }) isTemplate?: unknown;
  @Field(() => AppDefinedJsonScalar, {
    nullable: true,
    description: "Dependencies of the app, stored unchanged; null for none.",
  })
  dependencies?: unknown;
  @Field(() => String, { nullable: true, description: "Icon of the app; null for none." }) icon?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description: "True if a publication must state that the tests have passed, as `svc publish --tested` does.",
  })
  requiresTests?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description: "True if the app is a template of the system; only owners and admins of the app can change it.",
  })
  isSystemTemplate?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description: "True if the app is hidden; only owners and admins of the app can change it.",
  })
  isHidden?: unknown;
}

@InputType("AdministrateAppInput", {
  description:
    "Changes to an app and its settings by an owner or admin of the app; omitted properties keep their values.",
})
export class AdministrateAppInput extends UpdateAppInput {
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Object of setting keys and values to write; protected keys are ignored.",
  })
  settings?: unknown;
}

@ObjectType("User", { description: "Person with an account on the service." })
export class UserType {
  @Field(() => Int, { description: "ID of the person." }) id: number;
  @Field(() => Int, { description: "ID of the person's organization." }) organizationId: number;
  @Field(() => String, { description: "First name." }) firstName: string;
  @Field(() => String, { description: "Last name." }) lastName: string;
  @Field(() => String, { description: "E-mail address." }) email: string;
  @Field(() => DateTime, {
    nullable: true,
    description:
      "Time since when the person can edit the app, in a list of its editors, or administers the service, in a list of administrators; null elsewhere.",
  })
  updatedAt?: string;
}

@ObjectType("NewUser", { description: "Created person and the token of their session." })
export class CreatedUserType {
  @Field(() => UserType, { description: "Created person." }) user: User;
  @Field(() => String, { description: "Secret of the person's session; returned only once." }) token: string;
}

@InputType("CreateUserInput", { description: "Properties of a new person." })
export class CreateUserInput {
  @Field(() => String, { nullable: true, description: "First name; required." }) firstName?: unknown;
  @Field(() => String, { nullable: true, description: "Last name; required." }) lastName?: unknown;
  @Field(() => String, { nullable: true, description: "E-mail address; required." }) email?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the person's organization; the first organization by default.",
  })
  organizationId?: unknown;
}
