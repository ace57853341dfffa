/** The session of a page over GraphQL: its user signs in and out. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, ID, Int, Mutation, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Sessions } from "../../operations/data-sources/sessions.js";
import type { AppSession } from "../../rules/env-script.js";
import type { RequestContext } from "../context.js";
import { AppSessionType } from "./setting-resolver.js";

@Resolver()
export class SessionResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Sessions,
  ) {}

  @Query(() => AppSessionType, { description: "What `Svc.Session.get()` gives." })
  async appSession(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<AppSession> {
    const caller = await this.gate.enter(context, "readSession", appId);
    return this.service.session(caller, appId);
  }

  @Mutation(() => AppSessionType, { description: "Signs the page's user in by an entry and its hashed column." })
  async authorizeAppUser(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("dataSourceId", () => ID, { description: "Its id or its name." }) dataSourceId: string,
    @Arg("where", () => GraphQLJSON) where: unknown,
    @Arg("passport", () => String, { nullable: true }) passport?: string,
  ): Promise<AppSession> {
    return this.authorize(context, appId, { dataSourceId, where, passport: passport ?? undefined });
  }

  @Mutation(() => AppSessionType)
  async logoutAppUser(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<AppSession> {
    const caller = await this.gate.enter(context, "signInAppUser", appId);
    return this.service.logout(caller, appId);
  }

  @Mutation(() => AppSessionType, { description: "Emits session.locale.updated." })
  async setSessionLocale(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("locale", () => String) locale: unknown,
  ): Promise<AppSession> {
    const caller = await this.gate.enter(context, "signInAppUser", appId);
    return this.service.set(caller, appId, { locale });
  }

  /** As REST brings it. */
  async authorize(context: RequestContext, appId: number, body: unknown): Promise<AppSession> {
    const caller = await this.gate.enter(context, "signInAppUser", appId);
    return this.service.authorize(caller, appId, body);
  }
}
