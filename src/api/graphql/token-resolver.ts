/** An app's tokens over GraphQL: made, listed without their secrets, revoked. */
import { Arg, Ctx, Field, InputType, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { CredentialKind } from "../../data/credential.js";
import { ActionError } from "../../errors.js";
import { APP_TOKEN_KINDS, type CredentialSummary, type Credentials } from "../../operations/access/credentials.js";
import type { Gate } from "../../operations/access/gate.js";
import type { People } from "../../operations/access/people.js";
import { optionalId, requiredText } from "../../rules/fields.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { DateTime, TokenKindEnum } from "./leaf-types.js";

const KINDS: readonly unknown[] = APP_TOKEN_KINDS;

@ObjectType("Token", { description: "Access token of an app, without its secret." })
class TokenType {
  @Field(() => Int, { description: "ID of the token." }) id: number;
  @Field(() => TokenKindEnum, { description: "Kind of token." }) kind: CredentialKind;
  @Field(() => String, { nullable: true, description: "Label of the token; null if it has none." }) name: string | null;
  @Field(() => Int, { nullable: true, description: "ID of the person who uses the token; null if none is set." })
  userId: number | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { nullable: true, description: "Time when the token expires; null if it does not expire." })
  expiresAt: string | null;
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
  @Field(() => Int, { nullable: true, description: "ID of the person who uses the token; null for none." })
  userId?: unknown;
}

@Resolver()
export class TokenResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Credentials,
    private readonly people: People,
  ) {}

  @Query(() => [TokenType], { description: "Lists the valid tokens of the app without their secrets, newest first." })
  async tokens(@Ctx() context: RequestContext, @AppId() appId: number): Promise<CredentialSummary[]> {
    await this.gate.enter(context, "manageTokens", appId);
    return this.service.list(appId);
  }

  @Mutation(() => NewTokenType, { description: "Creates a token for the app." })
  async createToken(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("data", () => CreateTokenInput, { description: "Properties of the new token." }) data: unknown,
  ): Promise<NewTokenType> {
    await this.gate.enter(context, "manageTokens", appId);
    const { kind, name, userId } = (data ?? {}) as Record<string, unknown>;
    if (!KINDS.includes(kind)) throw new ActionError("REQUEST_INVALID", "kind must be api, viewer or live");
    const personId = await this.people.mustExist(appId, optionalId(userId, "userId"));
    const label = name === undefined || name === null ? null : requiredText(name, "name");
    return this.service.issueToApp({ kind: kind as CredentialKind, appId, name: label, personId });
  }

  @Mutation(() => Boolean, { description: "Revokes a token immediately; returns true." })
  async revokeToken(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int, { description: "ID of the token." }) id: number,
  ): Promise<boolean> {
    await this.gate.enter(context, "manageTokens", appId);
    await this.service.revoke(id, appId);
    return true;
  }
}
