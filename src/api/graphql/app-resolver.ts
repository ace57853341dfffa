/** Apps, their editors and their trail over GraphQL; and what administrators make. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { People, User } from "../../operations/access/people.js";
import type { App, Apps } from "../../operations/apps/apps.js";
import type { RequestContext } from "../context.js";

@ObjectType("App", { description: "An app without its settings." })
export class AppType {
  @Field(() => Int) id: number;
  @Field(() => Int) organizationId: number;
  @Field(() => String) name: string;
  @Field(() => Boolean) isPublished: boolean;
  @Field(() => Int, { nullable: true }) startingPageId: number | null;
  @Field(() => GraphQLJSON, { nullable: true }) hooks: unknown;
  @Field(() => Boolean) isTemplate: boolean;
  @Field(() => GraphQLJSON, { nullable: true }) dependencies: unknown;
  @Field(() => String, { nullable: true }) icon: string | null;
  @Field(() => Boolean) isSystemTemplate: boolean;
  @Field(() => Boolean) isHidden: boolean;
  @Field(() => String) createdAt: string;
  @Field(() => String) updatedAt: string;
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
class NewUserType {
  @Field(() => UserType) user: User;
  @Field(() => String, { description: "The person's session, in this answer and nowhere else." }) token: string;
}

@Resolver()
export class AppResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Apps,
    private readonly people: People,
  ) {}

  @Query(() => [AppType], { description: "The apps that the caller's credential reaches." })
  async apps(@Ctx() context: RequestContext): Promise<App[]> {
    return this.service.list(this.gate.enterService(context, "listApps"));
  }

  @Mutation(() => AppType)
  async createApp(
    @Ctx() context: RequestContext,
    @Arg("data", () => GraphQLJSON, { description: "{name, organizationId?}" }) data: unknown,
  ): Promise<App> {
    this.gate.enterService(context, "administrate");
    return this.service.create((data ?? {}) as Record<string, unknown>);
  }

  @Mutation(() => AppType, { description: "Changes the app's own fields; `settings` in the data is ignored." })
  async updateApp(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("data", () => GraphQLJSON) data: unknown,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "updateApp", appId);
    return this.service.update(caller, appId, data);
  }

  @Mutation(() => AppType, { description: "As updateApp, and writes `settings` but protected keys: both, or nothing." })
  async administrateApp(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("data", () => GraphQLJSON) data: unknown,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "administrate", appId);
    return this.service.administrate(caller, appId, data);
  }

  @Mutation(() => AppType)
  async publishApp(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<App> {
    const caller = await this.gate.enter(context, "publishApp", appId);
    return this.service.publish(caller, appId);
  }

  @Mutation(() => AppType)
  async unpublishApp(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<App> {
    const caller = await this.gate.enter(context, "publishApp", appId);
    return this.service.unpublish(caller, appId);
  }

  @Mutation(() => NewUserType)
  async createUser(
    @Ctx() context: RequestContext,
    @Arg("data", () => GraphQLJSON, { description: "{firstName, lastName, email, organizationId?}" }) data: unknown,
  ): Promise<NewUserType> {
    this.gate.enterService(context, "administrate");
    return this.people.create((data ?? {}) as Record<string, unknown>);
  }

  @Mutation(() => [UserType])
  async addEditor(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("userId", () => GraphQLJSON) userId: unknown,
  ): Promise<User[]> {
    await this.gate.enter(context, "manageEditors", appId);
    return this.people.addEditor(appId, userId);
  }

  @Mutation(() => [UserType])
  async removeEditor(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("userId", () => GraphQLJSON) userId: unknown,
  ): Promise<User[]> {
    await this.gate.enter(context, "manageEditors", appId);
    return this.people.removeEditor(appId, userId);
  }
}
