/** The session of a page over GraphQL: its user signs in and out. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Sessions } from "../../operations/data-sources/sessions.js";
import type { CodeAsked, Verification } from "../../operations/data-sources/verification.js";
import type { AppSession } from "../../rules/env-script.js";
import type { Reference, ReferenceKind } from "../../rules/reference.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { DateTime } from "./leaf-types.js";
import { By, Ref } from "./reference-arguments.js";
import { AppSessionType } from "./setting-resolver.js";

@ObjectType("VerificationAnswer", {
  description: "Without a code: until when the one holds that may have been sent. With one: the session.",
})
class VerificationAnswerType {
  @Field(() => DateTime, { nullable: true }) expiresAt?: string;
  @Field(() => AppSessionType, { nullable: true }) session?: AppSession;
}

@Resolver()
export class SessionResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Sessions,
    private readonly verification: Verification,
  ) {}

  @Query(() => AppSessionType, { description: "What `Svc.Session.get()` gives." })
  async appSession(@Ctx() context: RequestContext, @AppId() appId: number): Promise<AppSession> {
    const caller = await this.gate.enter(context, "readSession", appId);
    return this.service.session(caller, appId);
  }

  @Mutation(() => AppSessionType, { description: "Signs the page's user in by an entry and its hashed column." })
  async authorizeAppUser(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Ref("dataSourceId") ref: Reference,
    @Arg("where", () => GraphQLJSON) where: unknown,
    @Arg("passport", () => String, { nullable: true }) passport?: string,
    @By() _by?: ReferenceKind | null,
  ): Promise<AppSession> {
    const source = "id" in ref ? { dataSourceId: ref.id } : { dataSourceName: ref.name };
    return this.authorize(context, appId, { ...source, where, passport: passport ?? undefined });
  }

  @Mutation(() => AppSessionType)
  async logoutAppUser(@Ctx() context: RequestContext, @AppId() appId: number): Promise<AppSession> {
    const caller = await this.gate.enter(context, "signInAppUser", appId);
    return this.service.logout(caller, appId);
  }

  @Mutation(() => AppSessionType, { description: "Emits session.locale.updated." })
  async setSessionLocale(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("locale", () => String) locale: unknown,
  ): Promise<AppSession> {
    const caller = await this.gate.enter(context, "signInAppUser", appId);
    return this.service.set(caller, appId, { locale });
  }

  @Mutation(() => VerificationAnswerType, {
    description:
      "Has a code sent to an address that the app's users have, or, with `code`, signs the page's user in by it.",
  })
  async verifyAppUser(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("email", () => String, { nullable: true }) email?: string,
    @Arg("sms", () => String, { nullable: true }) sms?: string,
    @Arg("secondFactor", () => String, { nullable: true, description: '"sms", of who is signed in.' })
    secondFactor?: string,
    @Arg("code", () => String, { nullable: true }) code?: string,
  ): Promise<VerificationAnswerType> {
    return this.verify(context, appId, { email, sms, secondFactor, code });
  }

  /** As REST brings it: without a code what was asked for, with one the session. */
  async verify(context: RequestContext, appId: number, body: unknown): Promise<CodeAsked | { session: AppSession }> {
    const caller = await this.gate.enter(context, "verifyAppUser", appId);
    const asked = await this.verification.verify(caller, appId, body);
    return asked ?? { session: await this.service.session(caller, appId) };
  }

  /** As REST brings it. */
  async authorize(context: RequestContext, appId: number, body: unknown): Promise<AppSession> {
    const caller = await this.gate.enter(context, "signInAppUser", appId);
    return this.service.authorize(caller, appId, body);
  }
}
