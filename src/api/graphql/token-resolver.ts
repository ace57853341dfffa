/** An app's access tokens over GraphQL: create, list (without their secrets), revoke. */
import { Arg, Ctx, Field, InputType, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { CredentialKind } from "../../data/credential.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AppTokens, VersionedTokenSummary } from "../../operations/access/app-tokens.js";
import type { TokenScope } from "../../rules/access.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { DateTime, TokenKindEnum, TokenScopeEnum } from "./leaf-types.js";

@ObjectType("Token", { description: "Access token of an app, without its secret." })
class TokenType {
  @Field(() => Int, { description: "ID of the token." }) id: number;
  @Field(() => TokenKindEnum, { description: "Kind of token." }) kind: CredentialKind;
  @Field(() => String, { nullable: true, description: "Label of the token; null if it has none." }) name: string | null;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the person whose rights the token has; null if none is set.",
  })
  userId: number | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "State for `ifUpdatedAt`; equals `createdAt`." }) updatedAt: string;
  @Field(() => DateTime, { nullable: true, description: "Time when the token expires; null if it does not expire." })
  expiresAt: string | null;
  @Field(() => [TokenScopeEnum], { nullable: true, description: "Scopes of an API token; null if it has none." })
  scopes: TokenScope[] | null;
  @Field(() => DateTime, { nullable: true, description: "Time of the last use, to the minute; null if never used." })
  lastUsedAt: string | null;
  @Field(() => String, { nullable: true, description: "Network address of the last use; null if unknown." })
  lastUsedAddress: string | null;
}

@ObjectType("NewToken", { description: "Created token with its secret." })
class NewTokenType {
  @Field(() => Int, { description: "ID of the token." }) id: number;
  @Field(() => String, { description: "Secret of the token; returned only once." }) token: string;
}

@InputType("CreateTokenInput", { description: "Properties of a new token." })
class CreateTokenInput {
  @Field(() => TokenKindEnum, { nullable: true, description: "Kind of token; required." }) kind?: unknown;
  @Field(() => String, { nullable: true, description: "Label of the token; null for none." }) name?: unknown;
  @Field(() => Int, { nullable: true, description: "ID of the person whose rights the token has; null for none." })
  userId?: unknown;
  @Field(() => [TokenScopeEnum], {
    nullable: true,
    description:
      "Scopes of an API token. A token with null can read and write settings, entries, media, messages, notifications and data definitions, store log events, read logs and runs, and run live versions.",
  })
  scopes?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Time when the token expires; null for never." })
  expiresAt?: unknown;
}

@Resolver()
export class TokenResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: AppTokens,
  ) {}

  @Query(() => [TokenType], { description: "Lists the valid tokens of the app without their secrets, newest first." })
  async tokens(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<VersionedTokenSummary[]> {
    await this.accessChecks.requireAppAccess(context, "manageTokens", appId);
    return this.service.list(appId);
  }

  @Mutation(() => NewTokenType, { description: "Creates a token for the app." })
  async createToken(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => CreateTokenInput, { description: "Properties of the new token." }) data: unknown,
  ): Promise<NewTokenType> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageTokens", appId);
    return this.service.create(caller, appId, (data ?? {}) as Record<string, unknown>);
  }

  @Mutation(() => Boolean, { description: "Revokes a token immediately." })
  async revokeToken(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the token." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "manageTokens", appId);
    await this.service.revoke(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }
}
