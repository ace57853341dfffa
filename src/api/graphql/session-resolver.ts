/**
 * The session of an app's page over GraphQL: the page's user signs in and out. Each method checks the caller's access and then calls one
 * operation.
 */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AppUserSessions } from "../../operations/data-sources/sessions.js";
import type { AppUserVerification, VerificationCodeSentResponse } from "../../operations/data-sources/verification.js";
import type { AppSession } from "../../rules/app-session.js";
import type { IdOrName, ReferenceKind } from "../../rules/reference.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { DateTime } from "./leaf-types.js";
import { ReferenceArgument, ReferenceKindArgument } from "./reference-arguments.js";
import { AppSessionType } from "./setting-resolver.js";

@ObjectType("VerificationAnswer", {
  description: "Result of a verification: `expiresAt` if the request had no code, otherwise `session`.",
})
class VerificationAnswerType {
  @Field(() => DateTime, {
    nullable: true,
    description: "Time when the code expires, whether or not a message was sent; null if the request had a code.",
  })
  expiresAt?: string;
  @Field(() => AppSessionType, {
    nullable: true,
    description: "Session after the verification; null if the request had no code.",
  })
  session?: AppSession;
}

@Resolver()
export class AppSessionResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: AppUserSessions,
    private readonly verification: AppUserVerification,
  ) {}

  @Query(() => AppSessionType, { description: "Returns the session of the page, like `Svc.Session.get()`." })
  async appSession(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<AppSession> {
    const caller = await this.accessChecks.requireAppAccess(context, "readSession", appId);
    return this.service.session(caller, appId);
  }

  @Mutation(() => AppSessionType, {
    description: "Signs an app user in to the page; `where` must match an entry and its hashed column.",
  })
  async authorizeAppUser(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("where", () => GraphQLJSON, { description: "Values of the entry's columns, including the hashed one." })
    where: unknown,
    @Arg("passport", () => String, {
      nullable: true,
      description: "Sign-in method; must be dataSource, which is the default.",
    })
    passport?: string,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<AppSession> {
    const dataSourceReference = "id" in ref ? { dataSourceId: ref.id } : { dataSourceName: ref.name };
    return this.authorize(context, appId, { ...dataSourceReference, where, passport: passport ?? undefined });
  }

  @Mutation(() => AppSessionType, { description: "Signs out the user of the page; returns the session." })
  async logoutAppUser(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<AppSession> {
    const caller = await this.accessChecks.requireAppAccess(context, "signInAppUser", appId);
    return this.service.logout(caller, appId);
  }

  @Mutation(() => AppSessionType, {
    description:
      "Stores the language that the user of the page chose, in the log event session.locale.updated. If an app user is signed in, also stores the language in the user's session. The request does not change the language of the page.",
  })
  async setSessionLocale(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("locale", () => String, { description: "Language of the page, for example en-GB." }) locale: unknown,
  ): Promise<AppSession> {
    const caller = await this.accessChecks.requireAppAccess(context, "signInAppUser", appId);
    return this.service.setLocale(caller, appId, { locale });
  }

  @Mutation(() => VerificationAnswerType, {
    description: "Sends a code to an address of an app user, or signs in the user of the page with a code.",
  })
  async verifyAppUser(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("email", () => String, {
      nullable: true,
      description: "E-mail address of an app user; null for another method.",
    })
    email?: string,
    @Arg("sms", () => String, { nullable: true, description: "Phone number of an app user; null for another method." })
    sms?: string,
    @Arg("secondFactor", () => String, {
      nullable: true,
      description: "Second factor of the signed-in user; must be sms. Null for another method.",
    })
    secondFactor?: string,
    @Arg("code", () => String, { nullable: true, description: "Code that the user received; null to send one." })
    code?: string,
  ): Promise<VerificationAnswerType> {
    return this.verify(context, appId, { email, sms, secondFactor, code });
  }

  /**
   * Verifies an e-mail address or phone number. Sends a code if the body contains no code; otherwise checks the code and returns the
   * session.
   */
  async verify(
    context: RequestContext,
    appId: number,
    body: unknown,
  ): Promise<VerificationCodeSentResponse | { session: AppSession }> {
    const caller = await this.accessChecks.requireAppAccess(context, "verifyAppUser", appId);
    const verificationAnswer = await this.verification.verify(caller, appId, body);
    return verificationAnswer ?? { session: await this.service.session(caller, appId) };
  }

  async authorize(context: RequestContext, appId: number, body: unknown): Promise<AppSession> {
    const caller = await this.accessChecks.requireAppAccess(context, "signInAppUser", appId);
    return this.service.authorize(caller, appId, body);
  }
}
