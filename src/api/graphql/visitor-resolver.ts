/**
 * GraphQL resolver of the list of other origins whose pages may use the app. Only REST creates a visitor's session,
 * because the service parses no GraphQL document without a credential.
 */
import { Arg, Ctx, Mutation, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AllowedVisitorOrigins, VisitorSession, VisitorSessions } from "../../operations/client/visitors.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

/** Returns the origins, and stores the time of their last change in the context, for REST's ETag. */
function unwrapTaggedOrigins(context: RequestContext, { origins, updatedAt }: AllowedVisitorOrigins): string[] {
  context.updatedAt = updatedAt;
  return origins;
}

@Resolver()
export class VisitorResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: VisitorSessions,
  ) {}

  @Query(() => [String], { description: "Lists the origins whose pages can start sessions of visitors." })
  async appOrigins(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<string[]> {
    await this.accessChecks.requireAppAccess(context, "readOrigins", appId);
    return unwrapTaggedOrigins(context, await this.service.listOrigins(appId));
  }

  @Mutation(() => [String], {
    description:
      "Replaces the origins whose pages can start sessions of visitors. Returns the new origins as the service stores them.",
  })
  async setAppOrigins(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("origins", () => [String], {
      nullable: "itemsAndList",
      description: "Up to 50 https origins, or http origins of localhost; required.",
    })
    origins: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<string[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeOrigins", appId);
    const target = { appId, precondition: toExpectedVersions(ifUpdatedAt) };
    return unwrapTaggedOrigins(context, await this.service.setOrigins(caller, target, origins));
  }

  async createVisitor(context: RequestContext, appId: number): Promise<VisitorSession> {
    throwIfUnknownField(context);
    const { caller, address = "", browser } = context;
    const token = browser?.token;
    const currentSession = caller !== null && token !== undefined ? { caller, token } : null;
    return this.service.create({ appId, origin: browser?.pageOrigin, address, current: currentSession });
  }
}
