/** Apps, their editors and their trail over GraphQL; and what administrators make. */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { People, User } from "../../operations/access/people.js";
import type { App, Apps } from "../../operations/apps/apps.js";
import type { RequestContext } from "../context.js";
import {
  AdministrateAppInput,
  AppType,
  CreateAppInput,
  CreateUserInput,
  NewUserType,
  UpdateAppInput,
  UserType,
} from "./app-types.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";

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
  async createApp(@Ctx() context: RequestContext, @Arg("data", () => CreateAppInput) data: unknown): Promise<App> {
    this.gate.enterService(context, "administrate");
    return this.service.create((data ?? {}) as Record<string, unknown>);
  }

  @Mutation(() => AppType, { description: "Changes the app's own fields." })
  async updateApp(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("data", () => UpdateAppInput) data: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "updateApp", appId);
    return this.service.update(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, data);
  }

  @Mutation(() => AppType, { description: "As updateApp, and writes `settings` but protected keys: both, or nothing." })
  async administrateApp(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("data", () => AdministrateAppInput) data: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "administrate", appId);
    return this.service.administrate(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, data);
  }

  @Mutation(() => AppType)
  async publishApp(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "publishApp", appId);
    return this.service.publish(caller, { appId, precondition: preconditionOf(ifUpdatedAt) });
  }

  @Mutation(() => AppType)
  async unpublishApp(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "publishApp", appId);
    return this.service.unpublish(caller, { appId, precondition: preconditionOf(ifUpdatedAt) });
  }

  @Mutation(() => NewUserType)
  async createUser(
    @Ctx() context: RequestContext,
    @Arg("data", () => CreateUserInput) data: unknown,
  ): Promise<NewUserType> {
    this.gate.enterService(context, "administrate");
    return this.people.create((data ?? {}) as Record<string, unknown>);
  }

  @Query(() => [UserType], { description: "Who edits the app." })
  async editors(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<User[]> {
    await this.gate.enter(context, "manageEditors", appId);
    return this.people.editors(appId);
  }

  @Mutation(() => [UserType])
  async addEditor(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("userId", () => Int) userId: unknown,
  ): Promise<User[]> {
    await this.gate.enter(context, "manageEditors", appId);
    return this.people.addEditor(appId, userId);
  }

  @Mutation(() => [UserType])
  async removeEditor(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("userId", () => Int) userId: unknown,
  ): Promise<User[]> {
    await this.gate.enter(context, "manageEditors", appId);
    return this.people.removeEditor(appId, userId);
  }
}
