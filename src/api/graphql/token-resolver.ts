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

@ObjectType("Token")
class TokenType {
  @Field(() => Int) id: number;
  @Field(() => TokenKindEnum) kind: CredentialKind;
  @Field(() => String, { nullable: true }) name: string | null;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime, { nullable: true }) expiresAt: string | null;
}

@ObjectType("NewToken")
class NewTokenType {
  @Field(() => Int) id: number;
  @Field(() => String, { description: "The secret, in this answer and nowhere else." }) token: string;
}

@InputType("CreateTokenInput")
class CreateTokenInput {
  @Field(() => TokenKindEnum, { nullable: true }) kind?: unknown;
  @Field(() => String, { nullable: true, description: "A label, for the list." }) name?: unknown;
  @Field(() => Int, { nullable: true, description: "Who uses it." }) userId?: unknown;
}

@Resolver()
export class TokenResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Credentials,
    private readonly people: People,
  ) {}

  @Query(() => [TokenType])
  async tokens(@Ctx() context: RequestContext, @AppId() appId: number): Promise<CredentialSummary[]> {
    await this.gate.enter(context, "manageTokens", appId);
    return this.service.list(appId);
  }

  @Mutation(() => NewTokenType)
  async createToken(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("data", () => CreateTokenInput) data: unknown,
  ): Promise<NewTokenType> {
    await this.gate.enter(context, "manageTokens", appId);
    const { kind, name, userId } = (data ?? {}) as Record<string, unknown>;
    if (!KINDS.includes(kind)) throw new ActionError("REQUEST_INVALID", "kind must be api, viewer or live");
    const personId = await this.people.mustExist(appId, optionalId(userId, "userId"));
    const label = name === undefined || name === null ? null : requiredText(name, "name");
    return this.service.issueToApp({ kind: kind as CredentialKind, appId, name: label, personId });
  }

  @Mutation(() => Boolean, { description: "Ends the token at once." })
  async revokeToken(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<boolean> {
    await this.gate.enter(context, "manageTokens", appId);
    await this.service.revoke(id, appId);
    return true;
  }
}
