/**
 * Sign-in at OpenID providers (authorization code flow with PKCE, state and nonce, by openid-client). The issuer and the claim `sub`
 * identify a person. An equal e-mail address alone never links an identity to an account.
 */
import * as client from "openid-client";
import type { EntityManager } from "typeorm";
import type { OpenIdProvider } from "../../config/open-id.js";
import { type Db, isUniqueViolation } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { isObject } from "../../rules/describe-value.js";
import { requireEmail } from "../../rules/fields.js";
import { getHighestRole, ROLES, type Role } from "../../rules/roles.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "./access-events.js";
import type { Accounts, SignInRequest, SignInResult } from "./accounts.js";
import { type OpenIdIdentityStore, type ProvenIdentity } from "./identities.js";
import type { SignedInRequest } from "./passkeys.js";
import { lockCallersSignInMethods } from "./sign-in-methods.js";

/** Secrets of one sign-in at a provider, stored in a cookie of the browser that started it. */
export interface OpenIdFlow {
  provider: string;
  state: string;
  nonce: string;
  verifier: string;
  /** Path of the page that the browser opens after the sign-in. */
  next: string;
  /** For a signed-in person who links an identity: ID of the credential of the person's session. Null for a sign-in. */
  linkedBy: number | null;
}

/** Result of a sign-in at a provider, or of linking an identity. `next` is the path of the page that the browser opens. */
export type OpenIdOutcome =
  | { kind: "signed-in"; signedIn: SignInResult; next: string }
  | { kind: "linked"; next: string }
  | { kind: "refused"; reason: OpenIdFailureReason; next: string };

/** Reasons for a failed sign-in at a provider. Studio's sign-in page shows a text for each reason. */
export type OpenIdFailureReason =
  | "failed"
  | "unavailable"
  | "no-account"
  | "no-organization"
  | "too-many-members"
  | "email-in-use"
  | "linked-elsewhere";

const REQUESTED_SCOPE = "openid email profile";
const DISCOVERY_TIMEOUT_SECONDS = 10;
/** Time in milliseconds for which the provider's configuration and keys are cached. */
const PROVIDER_CACHE_MS = 3_600_000;
/**
 * Maximum number of callbacks per network address and minute. Any client can send a callback, which can cause a request to the provider and
 * an audit entry.
 */
const CALLBACKS_PER_ADDRESS = 120;
const CALLBACK_WINDOW_MS = 60_000;

class OpenIdSignInError extends Error {
  constructor(readonly reason: OpenIdFailureReason) {
    super(`sign-in at an OpenID provider failed: ${reason}`);
  }
}

const NAME_MAX_CHARACTERS = 255;

/** Returns a name from a claim, without control characters and cut to the maximum length; null if no text remains. */
function readNameClaim(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const text = value.replaceAll(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, " ").trim();
  // The cut can leave one half of a surrogate pair at the end.
  return text.slice(0, NAME_MAX_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "") || null;
}

/** Returns the e-mail address of a claim; null if it is not valid. Does not repair it: the result could be another person's address. */
function readEmailClaim(value: unknown): string | null {
  try {
    return requireEmail(value, "email");
  } catch {
    return null;
  }
}

/** True if the claim has this value. Some providers, such as Amazon Cognito, send booleans as text. */
const isBooleanClaim = (value: unknown, expected: boolean): boolean => value === expected || value === String(expected);

/** Returns the strings in the value of a claim, which is a single string or a list. Returns at most 1,000 strings of a list. */
const readClaimStrings = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((text): text is string => typeof text === "string").slice(0, 1_000);

function toIdentity(provider: OpenIdProvider, claims: Record<string, unknown>, issuer: string): ProvenIdentity {
  const email = readEmailClaim(claims["email"]);
  const [firstName, lastName] = [readNameClaim(claims["given_name"]), readNameClaim(claims["family_name"])];
  const name = readNameClaim(claims["name"]) ?? email ?? "OpenID";
  const mappedRoles = readClaimStrings(claims[provider.roleClaim]).map((group) => provider.roles.get(group));
  const isEmailVerified = isBooleanClaim(claims["email_verified"], true);
  const domain = isEmailVerified ? (email?.split("@").at(-1)?.toLowerCase() ?? null) : null;
  const keys = provider.organizationClaim === null ? [domain] : readClaimStrings(claims[provider.organizationClaim]);
  const organizations = keys.map((key) => (key === null ? undefined : provider.organizations.get(key)));
  return {
    issuer,
    subject: String(claims["sub"]),
    email: isBooleanClaim(claims["email_verified"], false) ? null : email,
    firstName: firstName ?? name.split(" ")[0]!,
    lastName: lastName ?? (name.split(" ").slice(1).join(" ") || name),
    role: getHighestRole(
      mappedRoles.filter((role): role is Role => (ROLES as readonly (string | undefined)[]).includes(role)),
    ),
    organizationId: organizations.find((id) => id !== undefined) ?? null,
  };
}

interface OpenIdOptions {
  db: Db;
  providers: readonly OpenIdProvider[];
  accounts: Accounts;
  identities: OpenIdIdentityStore;
}

export class OpenId {
  private readonly discoveriesByProvider = new Map<
    string,
    { configuration: Promise<client.Configuration>; startedAtMs: number }
  >();
  private readonly callbackBucket = createTokenBucket({ limit: CALLBACKS_PER_ADDRESS, windowMs: CALLBACK_WINDOW_MS });

  constructor(private readonly options: OpenIdOptions) {}

  private requireProvider(id: string): OpenIdProvider {
    const provider = this.options.providers.find((provider) => provider.id === id);
    if (!provider) throw new ActionError("NOT_FOUND", "there is no OpenID provider with this ID");
    return provider;
  }

  private async discoverConfiguration({
    id,
    issuer,
    clientId,
    clientSecret,
  }: OpenIdProvider): Promise<client.Configuration> {
    const discovery = this.discoveriesByProvider.get(id);
    if (discovery && discovery.startedAtMs > Date.now() - PROVIDER_CACHE_MS) return discovery.configuration;
    const url = new URL(issuer);
    const discoveryOptions = url.protocol === "http:" ? [client.allowInsecureRequests] : [];
    const configuration = client
      .discovery(url, clientId, undefined, client.ClientSecretPost(clientSecret), {
        execute: discoveryOptions,
        timeout: DISCOVERY_TIMEOUT_SECONDS,
      })
      .catch(() => {
        this.discoveriesByProvider.delete(id);
        throw new OpenIdSignInError("unavailable");
      });
    this.discoveriesByProvider.set(id, { configuration, startedAtMs: Date.now() });
    return configuration;
  }

  private async beginSignIn(id: string, redirectUri: string, next: string, linkedBy: number | null) {
    const provider = this.requireProvider(id);
    const configuration = await this.discoverConfiguration(provider);
    const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: REQUESTED_SCOPE,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    const flow: OpenIdFlow = { provider: id, state, nonce, verifier, next, linkedBy };
    return { url: url.href, flow };
  }

  /** Exchanges the code in the callback URL for tokens, and returns the identity in their claims. @throws OpenIdSignInError */
  private async proveIdentity(provider: OpenIdProvider, flow: OpenIdFlow, callback: URL): Promise<ProvenIdentity> {
    const configuration = await this.discoverConfiguration(provider);
    const { state, nonce, verifier } = flow;
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
    const tokens = await client.authorizationCodeGrant(configuration, callback, checks).catch(() => {
      throw new OpenIdSignInError("failed");
    });
    const claims: Record<string, unknown> = { ...tokens.claims() };
    const { issuer, userinfo_endpoint: endpoint } = configuration.serverMetadata();
    // Many providers send groups only in the user info. If this request fails, the sign-in must fail too: without groups, the service would
    // remove the person's role.
    const userInfo =
      endpoint === undefined
        ? {}
        : await client.fetchUserInfo(configuration, tokens.access_token, String(claims["sub"])).catch(() => {
            throw new OpenIdSignInError("unavailable");
          });
    return toIdentity(provider, { ...userInfo, ...claims }, issuer);
  }

  private async linkIdentity(
    request: SignInRequest,
    provider: OpenIdProvider,
    identity: ProvenIdentity,
    linkedBy: number,
  ) {
    const { db, identities } = this.options;
    const { caller, address } = request;
    if (!caller?.session || caller.credentialId !== linkedBy || caller.personId === null)
      throw new OpenIdSignInError("failed");
    const { personId, credentialId } = caller;
    await db.transaction(async (manager) => {
      const owner = await identities.lockAndFindOwner(identity, manager);
      await lockCallersSignInMethods(manager, { personId, credentialId }).catch(rethrowAsFailedSignIn);
      if (owner !== null && owner.personId !== personId) throw new OpenIdSignInError("linked-elsewhere");
      if (owner !== null) return;
      await identities.insert(manager, personId, provider.id, identity, { managesRoles: false });
      const data = { provider: provider.id };
      await recordAccessEvent(manager, {
        type: "person.identity.create",
        personId,
        subjectId: personId,
        address,
        data,
      });
    });
  }

  private async createUser(
    manager: EntityManager,
    { address }: SignInRequest,
    provider: OpenIdProvider,
    identity: ProvenIdentity,
  ): Promise<User> {
    const { identities } = this.options;
    if (!provider.autoCreate) throw new OpenIdSignInError("no-account");
    if (identity.email === null) throw new OpenIdSignInError("no-account");
    const hasOrganizationMapping = provider.organizations.size > 0;
    if (hasOrganizationMapping && identity.organizationId === null) throw new OpenIdSignInError("no-organization");
    const user = await identities.createPerson(manager, identity).catch((error: unknown) => {
      throw isUniqueViolation(error) ? new OpenIdSignInError("email-in-use") : error;
    });
    if (!user) throw new OpenIdSignInError("no-organization");
    await identities.insert(manager, user.id, provider.id, identity, { managesRoles: true });
    const data = { provider: provider.id };
    await recordAccessEvent(manager, {
      type: "person.create",
      subjectId: user.id,
      organizationId: user.organizationId,
      address,
      data,
    });
    return user;
  }

  private async signIn(
    request: SignInRequest,
    provider: OpenIdProvider,
    identity: ProvenIdentity,
  ): Promise<SignInResult> {
    const { db, accounts, identities } = this.options;
    return db.transaction(async (manager) => {
      const owner = await identities.lockAndFindOwner(identity, manager);
      const user = owner
        ? await accounts.requireUser(owner.personId, manager)
        : await this.createUser(manager, request, provider, identity);
      const managesRoles = owner ? owner.managesRoles : true;
      if (managesRoles && provider.roles.size > 0)
        await identities.setRole(manager, user, identity.role, request.address).catch(rethrowAsTooManyMembers);
      if (owner && !(await identities.markUsed(identity, user.id, manager))) throw new OpenIdSignInError("no-account");
      return accounts.beginSession(request, user, { by: "openid", provider: provider.id }, manager);
    });
  }

  list(): { id: string; name: string }[] {
    return this.options.providers.map(({ id, name }) => ({ id, name }));
  }

  /**
   * Starts a sign-in. Returns the provider's URL to which the browser is redirected, and the secrets to store in the browser's cookie.
   * @throws NOT_FOUND; OVERLOADED if the provider does not answer, or its answer is invalid
   */
  async start(id: string, redirectUri: string, next: string) {
    return this.beginSignIn(id, redirectUri, next, null).catch(rethrowAsOverloaded);
  }

  /**
   * Starts a sign-in at the provider for a caller who is already signed in. The callback then links the identity at the provider to the
   * caller's account. Returns the same as `start`.
   * @throws the same errors as `start`
   */
  async startLink({ caller }: SignedInRequest, id: string, redirectUri: string, next: string) {
    return this.beginSignIn(id, redirectUri, next, caller.credentialId).catch(rethrowAsOverloaded);
  }

  /**
   * Handles the provider's callback: signs the person in, or links the identity to the person's account.
   * @param flow the secrets from the browser's cookie; null if the cookie is missing or invalid
   * @param callback URL to which the provider sent the browser
   * @throws ActionError NOT_FOUND; RATE_LIMIT_EXCEEDED if the network address sends too many callbacks
   */
  async finish(request: SignInRequest, id: string, flow: OpenIdFlow | null, callback: URL): Promise<OpenIdOutcome> {
    const provider = this.requireProvider(id);
    const retryAfter = this.callbackBucket.takeTokens(getAddressBlock(request.address ?? ""));
    if (retryAfter > 0) {
      const message = `too many sign-ins at OpenID providers from this network address; try again in ${retryAfter} s`;
      throw createRateLimitError(message, retryAfter);
    }
    const next = flow?.next ?? "";
    try {
      if (flow === null || flow.provider !== id) throw new OpenIdSignInError("failed");
      const identity = await this.proveIdentity(provider, flow, callback);
      if (flow.linkedBy !== null) {
        await this.linkIdentity(request, provider, identity, flow.linkedBy);
        return { kind: "linked", next };
      }
      return { kind: "signed-in", signedIn: await this.signIn(request, provider, identity), next };
    } catch (error) {
      if (!(error instanceof OpenIdSignInError)) throw error;
      const { reason } = error;
      await recordAccessEvent(this.options.db, {
        type: "person.signInFailed",
        address: request.address,
        data: { by: "openid", provider: id, reason },
      });
      return { kind: "refused", reason, next };
    }
  }

  /** Returns the URL at which the provider signs the browser out; null if the provider is unknown, does not answer or has no such URL. */
  async findEndSessionUrl(id: string, returnTo: string): Promise<string | null> {
    const provider = this.options.providers.find((provider) => provider.id === id);
    if (!provider) return null;
    // If the provider does not answer, the browser is signed out of this service only.
    const configuration = await this.discoverConfiguration(provider).catch(() => null);
    if (!configuration?.serverMetadata().end_session_endpoint) return null;
    return client.buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo }).href;
  }
}

/** Turns an ActionError, such as the error of an ended session, into a failed sign-in. Rethrows other errors unchanged. */
function rethrowAsFailedSignIn(error: unknown): never {
  throw error instanceof ActionError ? new OpenIdSignInError("failed") : error;
}

/** Turns the error of a full organization into a failed sign-in. Rethrows other errors. */
function rethrowAsTooManyMembers(error: unknown): never {
  throw error instanceof ActionError ? new OpenIdSignInError("too-many-members") : error;
}

function rethrowAsOverloaded(error: unknown): never {
  if (!(error instanceof OpenIdSignInError)) throw error;
  const message = "the OpenID provider does not answer, or its configuration is invalid; try again in 5 s";
  throw new ActionError("OVERLOADED", message, { retryAfter: 5 });
}

/** Parses the value of the sign-in cookie. Returns null if the value is missing or invalid. */
export function parseOpenIdFlowCookie(text: string | undefined): OpenIdFlow | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(text ?? "", "base64url").toString());
    if (!isObject(value)) return null;
    const { provider, state, nonce, verifier, next, linkedBy } = value;
    const isText = [provider, state, nonce, verifier, next].every((part) => typeof part === "string");
    return isText && (linkedBy === null || typeof linkedBy === "number") ? (value as unknown as OpenIdFlow) : null;
  } catch {
    return null;
  }
}

export const formatOpenIdFlowCookie = (flow: OpenIdFlow): string =>
  Buffer.from(JSON.stringify(flow)).toString("base64url");
