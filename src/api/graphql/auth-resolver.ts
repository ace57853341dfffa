/**
 * Accounts of people over GraphQL: who the caller is, own account, own sessions. Signing in, set-up and reset go by REST only, because no
 * GraphQL document is parsed without a credential.
 */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { Gate } from "../../operations/access/gate.js";
import type { User } from "../../operations/access/people.js";
import type { SignedIn, SignInRequest } from "../../operations/accounts/accounts.js";
import type { PeopleAccounts } from "../../operations/accounts/people-accounts.js";
import type { PersonSession } from "../../operations/accounts/person-sessions.js";
import type { WhoAmI } from "../../operations/accounts/who-am-i.js";
import type { Caller } from "../../rules/access.js";
import type { RequestContext } from "../context.js";
import { UserType } from "./app-types.js";
import { AuthSessionType, PersonSessionType, UpdateAccountInput } from "./auth-types.js";

/** Answer of a sign-in (contract, section 7). */
interface SignInAnswer {
  user: User;
  expiresAt: string;
}

const requestOf = ({ caller, address, browser }: RequestContext): SignInRequest => ({
  caller,
  address,
  userAgent: browser?.userAgent,
});

/** Puts the session into the browser's cookie; its token is in no body. */
function answerOf({ browser }: RequestContext, { user, session }: SignedIn): SignInAnswer {
  browser?.setSession(session);
  return { user, expiresAt: session.expiresAt };
}

@Resolver()
export class AuthResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: PeopleAccounts,
  ) {}

  /** The caller, who must have signed in as a person: a token does not manage the account of its person. */
  private enterAccount(context: RequestContext): Caller & { personId: number } {
    const caller = this.gate.enterService(context, "ownAccount");
    if (!caller.session || caller.personId === null) {
      throw new ActionError("FORBIDDEN", "only a session of a signed-in person may do that");
    }
    return { ...caller, personId: caller.personId };
  }

  async setup(context: RequestContext, body: Record<string, unknown>): Promise<SignInAnswer> {
    return answerOf(context, await this.service.accounts.setup(requestOf(context), body));
  }

  async signIn(context: RequestContext, body: Record<string, unknown>): Promise<SignInAnswer> {
    return answerOf(context, await this.service.accounts.signIn(requestOf(context), body));
  }

  async signOut(context: RequestContext): Promise<void> {
    await this.service.accounts.signOut(requestOf(context));
    context.browser?.setSession(null);
  }

  requestReset(context: RequestContext, body: Record<string, unknown>): void {
    this.service.accounts.requestReset(requestOf(context), body);
  }

  async confirmReset(context: RequestContext, body: Record<string, unknown>): Promise<void> {
    await this.service.accounts.confirmReset(requestOf(context), body);
  }

  @Query(() => AuthSessionType, { description: "Returns the person behind the credential and their roles." })
  async authSession(@Ctx() context: RequestContext): Promise<WhoAmI> {
    return this.service.whoAmI(this.gate.enterService(context, "ownAccount"));
  }

  @Mutation(() => UserType, {
    description: "Changes the caller's own name or passphrase. A new passphrase ends all other sessions.",
  })
  async updateOwnAccount(
    @Ctx() context: RequestContext,
    @Arg("data", () => UpdateAccountInput, { description: "Properties to change." }) data: unknown,
  ): Promise<User> {
    return this.updateAccount(context, (data ?? {}) as Record<string, unknown>);
  }

  /** As REST sends it. */
  async updateAccount(context: RequestContext, body: Record<string, unknown>): Promise<User> {
    const caller = this.enterAccount(context);
    return this.service.accounts.update({ ...requestOf(context), caller }, body);
  }

  @Query(() => [PersonSessionType], { description: "Lists the caller's own sessions, the one used last first." })
  async authSessions(@Ctx() context: RequestContext): Promise<PersonSession[]> {
    const { personId, credentialId } = this.enterAccount(context);
    return this.service.sessions.list(personId, credentialId);
  }

  @Mutation(() => Boolean, { description: "Ends one of the caller's own sessions; returns true." })
  async endAuthSession(
    @Ctx() context: RequestContext,
    @Arg("id", () => Int, { description: "ID of the session." }) id: number,
  ): Promise<boolean> {
    const { personId } = this.enterAccount(context);
    await this.service.sessions.end(personId, id);
    return true;
  }

  @Mutation(() => Boolean, { description: "Ends all of the caller's own sessions except this one; returns true." })
  async endOtherAuthSessions(@Ctx() context: RequestContext): Promise<boolean> {
    const { personId, credentialId } = this.enterAccount(context);
    await this.service.sessions.endAll(personId, credentialId);
    return true;
  }
}
