/**
 * Accounts of people over GraphQL: the caller, the account, sessions, passkeys and identities. Only REST has sign-in, set-up and reset,
 * because the service parses no GraphQL document without a credential. Only REST has WebAuthn, because its JSON has no GraphQL type.
 */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { User } from "../../operations/access/people.js";
import type { AccessLogPage } from "../../operations/accounts/access-events.js";
import type { SignInResult } from "../../operations/accounts/accounts.js";
import type { CallerAccess } from "../../operations/accounts/caller-access.js";
import type { ProviderIdentity } from "../../operations/accounts/identities.js";
import type { Passkey, PasskeyPageOrigin, SignedInRequest } from "../../operations/accounts/passkeys.js";
import type { AccountModules } from "../../operations/accounts/people-accounts.js";
import type { PersonSession } from "../../operations/accounts/person-sessions.js";
import type { Caller } from "../../rules/access.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { type RequestContext, toSignInRequest } from "../context.js";
import { UserType } from "./app-types.js";
import { Limit } from "./arguments.js";
import {
  AccessLogListType,
  AuthIdentityType,
  AuthSessionType,
  PasskeyType,
  PersonSessionType,
  UpdateAccountInput,
} from "./auth-types.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

/** Response to a sign-in (contract, section 7). */
interface SignInAnswer {
  user: User;
  expiresAt: string;
}

/** Sets the session cookie of the browser, because no response body contains the session's token. Returns the body. */
function startBrowserSession({ browser }: RequestContext, { user, session }: SignInResult): SignInAnswer {
  browser?.setSession(session);
  return { user, expiresAt: session.expiresAt };
}

@Resolver()
export class AuthResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: AccountModules,
  ) {}

  /** Checks that the caller is a person with a session, and returns the data of the request for operations on the person's account. */
  private createSignedInRequest(context: RequestContext): SignedInRequest {
    return { ...toSignInRequest(context), caller: this.requireSessionCaller(context) };
  }

  /**
   * Returns the browser page that sent the request, because WebAuthn checks the origin of this page.
   * @throws REQUEST_INVALID for a websocket
   */
  private requirePasskeyPage({ browser }: RequestContext): PasskeyPageOrigin {
    if (browser) return browser;
    throw new ActionError(
      "REQUEST_INVALID",
      "GraphQL operations for passkeys must be sent as an HTTP request (got a websocket message)",
    );
  }

  /** Returns the caller, who must be a person with a session: a token cannot manage the account of its person. */
  private requireSessionCaller(context: RequestContext): Caller & { personId: number } {
    const caller = this.accessChecks.requireServiceAccess(context, "manageOwnAccount");
    if (!caller.session || caller.personId === null) {
      throw new ActionError(
        "FORBIDDEN",
        "permission denied: sign in to your account; a token cannot manage an account",
      );
    }
    throwIfUnknownField(context);
    return { ...caller, personId: caller.personId };
  }

  async setup(context: RequestContext, body: Record<string, unknown>): Promise<SignInAnswer> {
    return startBrowserSession(context, await this.service.accounts.setup(toSignInRequest(context), body));
  }

  async signIn(context: RequestContext, body: Record<string, unknown>): Promise<SignInAnswer> {
    return startBrowserSession(context, await this.service.accounts.signIn(toSignInRequest(context), body));
  }

  /** Ends the session. Returns the sign-out URL of the OpenID provider with which the person signed in; null if there was none. */
  async signOut(context: RequestContext): Promise<string | null> {
    throwIfUnknownField(context);
    const { caller, browser } = context;
    const provider = caller?.session ? await this.service.sessions.findSessionProvider(caller.credentialId) : null;
    await this.service.accounts.signOut(toSignInRequest(context));
    browser?.setSession(null);
    return provider && browser ? this.service.openId.findEndSessionUrl(provider, `${browser.origin}/studio`) : null;
  }

  async providers(): Promise<{ id: string; name: string }[]> {
    return this.service.openId.list();
  }

  async passkeyAuthenticationOptions(context: RequestContext): Promise<object> {
    throwIfUnknownField(context);
    return this.service.passkeys.createAuthenticationOptions(
      toSignInRequest(context),
      this.requirePasskeyPage(context),
    );
  }

  async passkeySignIn(context: RequestContext, body: Record<string, unknown>): Promise<SignInAnswer> {
    const page = this.requirePasskeyPage(context);
    return startBrowserSession(context, await this.service.passkeys.signIn(toSignInRequest(context), page, body));
  }

  async passkeyRegistrationOptions(context: RequestContext): Promise<object> {
    return this.service.passkeys.createRegistrationOptions(
      this.createSignedInRequest(context),
      this.requirePasskeyPage(context),
    );
  }

  async registerPasskey(context: RequestContext, body: Record<string, unknown>): Promise<Passkey> {
    return this.service.passkeys.register(this.createSignedInRequest(context), this.requirePasskeyPage(context), body);
  }

  async passkey(context: RequestContext, id: number): Promise<Passkey> {
    return this.service.passkeys.get(this.requireSessionCaller(context).personId, id);
  }

  @Query(() => [PasskeyType], { description: "Lists the caller's own passkeys." })
  async passkeys(@Ctx() context: RequestContext): Promise<Passkey[]> {
    return this.service.passkeys.list(this.requireSessionCaller(context).personId);
  }

  @Mutation(() => Boolean, { description: "Removes one of the caller's own passkeys." })
  async removePasskey(
    @Ctx() context: RequestContext,
    @Arg("id", () => Int, { description: "ID of the passkey." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    await this.service.passkeys.remove(this.createSignedInRequest(context), id, toExpectedVersions(ifUpdatedAt));
    return true;
  }

  @Query(() => [AuthIdentityType], {
    description: "Lists the identities at OpenID providers that sign in to the caller's account.",
  })
  async authIdentities(@Ctx() context: RequestContext): Promise<ProviderIdentity[]> {
    return this.service.identities.list(this.requireSessionCaller(context).personId);
  }

  @Mutation(() => Boolean, {
    description: "Removes one of the caller's own identities at OpenID providers.",
  })
  async removeAuthIdentity(
    @Ctx() context: RequestContext,
    @Arg("id", () => Int, { description: "ID of the identity." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    await this.service.identities.remove(this.createSignedInRequest(context), id, toExpectedVersions(ifUpdatedAt));
    return true;
  }

  requestReset(context: RequestContext, body: Record<string, unknown>): void {
    this.service.accounts.requestReset(toSignInRequest(context), body);
  }

  async confirmReset(context: RequestContext, body: Record<string, unknown>): Promise<void> {
    await this.service.accounts.confirmReset(toSignInRequest(context), body);
  }

  @Query(() => AuthSessionType, { description: "Returns the person behind the credential and their roles." })
  async authSession(@Ctx() context: RequestContext): Promise<CallerAccess> {
    return this.service.whoAmI(this.accessChecks.requireServiceAccess(context, "manageOwnAccount"));
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

  async updateAccount(context: RequestContext, body: Record<string, unknown>): Promise<User> {
    return this.service.accounts.update(this.createSignedInRequest(context), body);
  }

  @Query(() => [PersonSessionType], { description: "Lists the caller's own sessions, the last used first." })
  async authSessions(@Ctx() context: RequestContext): Promise<PersonSession[]> {
    const { personId, credentialId } = this.requireSessionCaller(context);
    return this.service.sessions.list(personId, credentialId);
  }

  @Mutation(() => Boolean, { description: "Ends one of the caller's own sessions." })
  async endAuthSession(
    @Ctx() context: RequestContext,
    @Arg("id", () => Int, { description: "ID of the session." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const { personId } = this.requireSessionCaller(context);
    await this.service.sessions.endSession(personId, id, toExpectedVersions(ifUpdatedAt));
    return true;
  }

  @Mutation(() => Boolean, { description: "Ends all sessions of the caller except the current session." })
  async endOtherAuthSessions(@Ctx() context: RequestContext): Promise<boolean> {
    const { personId, credentialId } = this.requireSessionCaller(context);
    await this.service.sessions.endAllSessions(personId, credentialId);
    return true;
  }

  @Query(() => AccessLogListType, {
    description:
      "Lists the audit log of an organization, newest first: sign-ins, and changes of accounts and members. The caller must be an admin of the organization.",
  })
  async organizationAudit(
    @Ctx() context: RequestContext,
    @Arg("organizationId", () => Int, { description: "ID of the organization." }) organizationId: number,
    @Limit() limit?: number | null,
    @Arg("cursor", () => String, {
      nullable: true,
      description: "The `nextCursor` of the previous response, to continue the list.",
    })
    cursor?: string | null,
  ): Promise<AccessLogPage> {
    const organizationAccess = await this.accessChecks.requireOrganizationAccess(
      context,
      "manageOrganization",
      organizationId,
    );
    return this.service.listAccess(organizationAccess.organizationId, organizationAccess.caller.kind === "admin", {
      limit,
      cursor,
    });
  }
}
