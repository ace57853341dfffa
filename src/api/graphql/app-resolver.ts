/** GraphQL resolver of apps, their editors and their audit log, and of the operations of administrators. */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { App, Apps } from "../../operations/apps/apps.js";
import type { Editor, Editors } from "../../operations/members/editors.js";
import type { Caller } from "../../rules/access.js";
import { describeValue } from "../../rules/describe-value.js";
import { parseOptionalId } from "../../rules/fields.js";
import type { RequestContext } from "../context.js";
import {
  AdministrateAppInput,
  AppType,
  CreateAppInput,
  CreatedUserType,
  CreateUserInput,
  UpdateAppInput,
  UserType,
} from "./app-types.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

@Resolver()
export class AppResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Apps,
    private readonly appEditors: Editors,
  ) {}

  /**
   * Checks that the caller administers the organization that `data` names. Without `organizationId`, chooses one that the caller
   * administers. Returns `data` with the ID of the organization.
   * @throws ActionError FORBIDDEN, REQUEST_INVALID
   */
  private async requireAdministeredOrganization(
    context: RequestContext,
    data: Record<string, unknown>,
  ): Promise<{ caller: Caller; data: Record<string, unknown> }> {
    const { organizationId: requestedId } = data;
    const validId = Number.isSafeInteger(requestedId) && (requestedId as number) > 0 ? (requestedId as number) : null;
    const organizationAccess = await this.accessChecks
      .requireOrganizationAccess(context, "administrate", validId)
      .catch((error) => {
        const isMissing = error instanceof ActionError && error.status === "NOT_FOUND";
        throw isMissing
          ? new ActionError(
              "REQUEST_INVALID",
              `organizationId must be the ID of an existing organization (got ${describeValue(requestedId)})`,
            )
          : error;
      });
    const organizationId = parseOptionalId(requestedId, "organizationId") ?? organizationAccess.organizationId;
    return { caller: organizationAccess.caller, data: { ...data, organizationId } };
  }

  @Query(() => [AppType], { description: "Lists the apps that the caller can access." })
  async apps(@Ctx() context: RequestContext): Promise<App[]> {
    return this.service.list(this.accessChecks.requireServiceAccess(context, "listApps"));
  }

  @Mutation(() => AppType, {
    description: "Creates an app. The caller must be an admin of the organization.",
  })
  async createApp(
    @Ctx() context: RequestContext,
    @Arg("data", () => CreateAppInput, { description: "Properties of the new app." }) data: unknown,
  ): Promise<App> {
    const organizationAccess = await this.requireAdministeredOrganization(
      context,
      (data ?? {}) as Record<string, unknown>,
    );
    return this.service.create(organizationAccess.data);
  }

  @Mutation(() => AppType, { description: "Updates the fields of an app, without its settings." })
  async updateApp(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => UpdateAppInput, { description: "Properties to change." }) data: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<App> {
    const caller = await this.accessChecks.requireAppAccess(context, "updateApp", appId);
    return this.service.update(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, data);
  }

  @Mutation(() => AppType, {
    description:
      "Updates the fields of an app, and writes its public and private settings, in one transaction. The caller must be an owner or admin of the app.",
  })
  async administrateApp(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => AdministrateAppInput, { description: "Properties and settings to change." }) data: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<App> {
    const caller = await this.accessChecks.requireAppAccess(context, "administrate", appId);
    return this.service.updateWithSettings(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, data);
  }

  @Mutation(() => AppType, { description: "Publishes the app." })
  async publishApp(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<App> {
    const caller = await this.accessChecks.requireAppAccess(context, "publishApp", appId);
    return this.service.publish(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) });
  }

  @Mutation(() => AppType, { description: "Unpublishes the app and pauses its live versions." })
  async unpublishApp(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<App> {
    const caller = await this.accessChecks.requireAppAccess(context, "publishApp", appId);
    return this.service.unpublish(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) });
  }

  @Mutation(() => CreatedUserType, {
    description: "Creates a person and a session of this person. The caller must be an admin of the organization.",
  })
  async createUser(
    @Ctx() context: RequestContext,
    @Arg("data", () => CreateUserInput, { description: "Properties of the new person." }) data: unknown,
  ): Promise<CreatedUserType> {
    const organizationAccess = await this.requireAdministeredOrganization(
      context,
      (data ?? {}) as Record<string, unknown>,
    );
    return this.appEditors.createPerson(organizationAccess.caller, organizationAccess.data);
  }

  @Query(() => [UserType], { description: "Lists the people who can edit the app." })
  async editors(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<Editor[]> {
    await this.accessChecks.requireAppAccess(context, "manageEditors", appId);
    return this.appEditors.list(appId);
  }

  @Mutation(() => [UserType], { description: "Gives a person permission to edit the app; returns all editors." })
  async addEditor(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("userId", () => Int, { description: "ID of the person." }) userId: unknown,
  ): Promise<Editor[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageEditors", appId);
    return this.appEditors.add(caller, appId, userId);
  }

  @Mutation(() => [UserType], {
    description: "Removes a person's permission to edit the app; returns the remaining editors.",
  })
  async removeEditor(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("userId", () => Int, { description: "ID of the person." }) userId: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Editor[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageEditors", appId);
    return this.appEditors.remove(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, userId);
  }
}
