/**
 * OAuth 2.1 server. With it, people give programs access to their apps. Supports authorization codes with PKCE, device codes, refresh
 * tokens that can be used once, and revocation (RFC 7009).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Db, SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { TOKEN_SCOPES, type TokenScope } from "../../rules/access.js";
import { describeValue } from "../../rules/describe-value.js";
import type { Credentials } from "../access/credentials.js";
import { generateSecret, generateToken } from "../access/tokens.js";
import {
  DEVICE_GRANT_TYPE,
  GRANT_TYPES,
  isRegisteredRedirectUrl,
  type OauthClient,
  OauthClients,
} from "./oauth-clients.js";
import { type DeviceAuthorization, OauthDeviceRequests } from "./oauth-devices.js";
import { OauthError } from "./oauth-failure.js";
import { type GrantableApp, type GrantDecision, type OAuthGrant, OauthGrants } from "./oauth-grants.js";
import { OauthRateLimits } from "./oauth-limits.js";

const CODE_LIFETIME_MS = 60_000;
const ACCESS_TOKEN_LIFETIME_MS = 3_600_000;
const REFRESH_TOKEN_LIFETIME_MS = 30 * 86_400_000;
const STATE_MAX_CHARACTERS = 2_000;

export interface AuthorizationRequest {
  client: OauthClient;
  redirectUri: string;
  scopes: TokenScope[];
  state: string | null;
  codeChallenge: string;
}

export interface TokenResponse {
  access_token: string;
  token_type: "Bearer";
  expires_in: number;
  refresh_token: string;
  scope: string;
}

type Parameters = Readonly<Record<string, string | undefined>>;

/** Parses the parameter `scope`. An empty or missing text means all scopes. @throws OauthError for an unknown scope */
function parseScopes(text: string | undefined): TokenScope[] {
  const namedScopes = [...new Set((text ?? "").split(" ").filter(Boolean))];
  const unknownScope = namedScopes.find((name) => !(TOKEN_SCOPES as readonly string[]).includes(name));
  if (unknownScope !== undefined)
    throw new OauthError("invalid_scope", `scope may only contain ${TOKEN_SCOPES.join(", ")} (got ${unknownScope})`);
  return namedScopes.length === 0 ? [...TOKEN_SCOPES] : (namedScopes as TokenScope[]);
}

const removeTrailingSlash = (address: string): string => (address.endsWith("/") ? address.slice(0, -1) : address);

/** Rejects a request for a token of another service (RFC 8707). `issuer` is the URL of this service. @throws OauthError */
export function checkTokenResource({ resource }: Parameters, issuer: string): void {
  if (resource === undefined) return;
  const resourceUrl = URL.parse(resource)?.href ?? "";
  const isOwnResource = [issuer, `${issuer}/mcp`].some(
    (resource) => removeTrailingSlash(new URL(resource).href) === removeTrailingSlash(resourceUrl),
  );
  if (!isOwnResource)
    throw new OauthError(
      "invalid_target",
      `resource must be ${issuer} or ${issuer}/mcp (got ${describeValue(resource)})`,
    );
}

function matchesCodeChallenge(verifier: string, challenge: string): boolean {
  if (!/^[\w.~-]{43,128}$/.test(verifier)) return false;
  const challengeDigest = createHash("sha256").update(verifier).digest();
  const expected = Buffer.from(challenge, "base64url");
  return challengeDigest.length === expected.length && timingSafeEqual(challengeDigest, expected);
}

export class OAuthServer {
  readonly clients: OauthClients;
  readonly devices: OauthDeviceRequests;
  readonly grants: OauthGrants;
  readonly limits = new OauthRateLimits();
  readonly #db: Db;

  constructor(options: { db: Db; credentials: Credentials }) {
    this.#db = options.db;
    this.clients = new OauthClients(options.db);
    this.devices = new OauthDeviceRequests(options.db);
    this.grants = new OauthGrants(options.db, options.credentials);
  }

  async #requireClient(id: string | undefined): Promise<OauthClient> {
    const client = id === undefined ? null : await this.clients.find(id);
    if (!client)
      throw new OauthError(
        "invalid_client",
        "client_id must be the ID of a registered program; register the program first",
      );
    return client;
  }

  /**
   * Validates the request with which a program has sent a person's browser to the service. Show the error to the person instead of
   * redirecting the browser: an invalid request could redirect to any site.
   * @throws OauthError
   */
  async readAuthorization(input: Parameters): Promise<AuthorizationRequest> {
    const client = await this.#requireClient(input["client_id"]);
    const redirectUri = input["redirect_uri"] ?? "";
    if (!isRegisteredRedirectUrl(redirectUri, client)) {
      throw new OauthError(
        "invalid_request",
        `redirect_uri must be a redirect URL of the registered program (got ${describeValue(redirectUri)})`,
      );
    }
    if (input["response_type"] !== "code")
      throw new OauthError(
        "unsupported_response_type",
        `response_type must be "code" (got ${describeValue(input["response_type"])})`,
      );
    const codeChallenge = input["code_challenge"] ?? "";
    if (input["code_challenge_method"] !== "S256" || !/^[\w-]{43}$/.test(codeChallenge)) {
      throw new OauthError(
        "invalid_request",
        'code_challenge must be a SHA-256 hash in base64url (43 characters), and code_challenge_method must be "S256"',
      );
    }
    const state = input["state"] ?? null;
    if (state !== null && state.length > STATE_MAX_CHARACTERS)
      throw new OauthError(
        "invalid_request",
        `state must be a text of at most ${STATE_MAX_CHARACTERS} characters (got ${state.length})`,
      );
    return { client, redirectUri, scopes: parseScopes(input["scope"]), state, codeChallenge };
  }

  /** Returns the program's redirect URL with an authorization code, or with the error `access_denied` if `decision` is null. */
  async authorize(request: AuthorizationRequest, decision: GrantDecision | null, issuer: string): Promise<string> {
    const redirectUrl = new URL(request.redirectUri);
    if (request.state !== null) redirectUrl.searchParams.set("state", request.state);
    redirectUrl.searchParams.set("iss", issuer);
    if (!decision) {
      redirectUrl.searchParams.set("error", "access_denied");
      return redirectUrl.href;
    }
    const grant = await this.#createGrant(request.client, request.scopes, decision);
    const code = generateSecret("svc_code");
    const { redirectUri, codeChallenge } = request;
    await this.grants.addSecret("code", code, grant.id, {
      expiresAt: new Date(Date.now() + CODE_LIFETIME_MS),
      redirectUri,
      codeChallenge,
    });
    redirectUrl.searchParams.set("code", code);
    return redirectUrl.href;
  }

  async #createGrant(client: OauthClient, requested: readonly string[], decision: GrantDecision): Promise<OAuthGrant> {
    const unrequestedScope = decision.scopes.find((scope) => !requested.includes(scope));
    if (unrequestedScope !== undefined) {
      const message = `scopes can contain only scopes that the program requested (got ${unrequestedScope})`;
      throw new ActionError("REQUEST_INVALID", message);
    }
    return this.grants.create(decision, client.id);
  }

  async startDevice(input: Parameters): Promise<DeviceAuthorization> {
    const client = await this.#requireClient(input["client_id"]);
    if (!client.grantTypes.includes(DEVICE_GRANT_TYPE))
      throw new OauthError(
        "unauthorized_client",
        `the program is not registered for device codes; register it again with ${DEVICE_GRANT_TYPE} in grant_types`,
      );
    const app = input["app"];
    if (app !== undefined && !/^[1-9]\d{0,14}$/.test(app))
      throw new OauthError(
        "invalid_request",
        `app must be the ID of an app, a positive whole number (got ${describeValue(app)})`,
      );
    return this.devices.start(client.id, parseScopes(input["scope"]), app === undefined ? null : Number(app));
  }

  /**
   * Applies a person's decision to the program that shows this user code. A decision of null denies access.
   * @throws NOT_FOUND if no program waits for the code
   */
  async decideDevice(userCode: string, decision: GrantDecision | null): Promise<void> {
    const request = await this.devices.find(userCode);
    const expiredCodeError = new ActionError(
      "NOT_FOUND",
      "no program waits for a sign-in with this code; check the code, or start the sign-in in the program again",
    );
    if (!request) throw expiredCodeError;
    const client = await this.#requireClient(request.clientId);
    const grant = decision === null ? null : await this.#createGrant(client, request.scopes, decision);
    if (await this.devices.decide(userCode, grant?.id ?? null)) return;
    if (grant) await this.grants.revoke(grant.personId, grant.id);
    throw expiredCodeError;
  }

  /** Handles POST /oauth/token: issues an access token and a refresh token. @throws OauthError */
  async handleTokenRequest(input: Parameters): Promise<TokenResponse> {
    const client = await this.#requireClient(input["client_id"]);
    const type = input["grant_type"] ?? "";
    if (!client.grantTypes.includes(type)) {
      const isKnown = GRANT_TYPES.some((known) => known === type);
      throw new OauthError(
        isKnown ? "unauthorized_client" : "unsupported_grant_type",
        isKnown
          ? `the program is not registered for the grant_type ${type}; register it again with this grant_type`
          : `grant_type must be one of ${GRANT_TYPES.join(", ")} (got ${describeValue(input["grant_type"])})`,
      );
    }
    if (type === DEVICE_GRANT_TYPE) return this.#issueForDevice(client, input);
    return type === "refresh_token" ? this.#issueForRefreshToken(client, input) : this.#issueForCode(client, input);
  }

  async #issueForCode(client: OauthClient, input: Parameters): Promise<TokenResponse> {
    const code = input["code"] ?? "";
    const storedCode = await this.grants.findSecret("code", code);
    const isValidCode =
      storedCode !== null &&
      storedCode.grant.clientId === client.id &&
      storedCode.redirectUri === input["redirect_uri"] &&
      storedCode.expiresAt.getTime() > Date.now() &&
      matchesCodeChallenge(input["code_verifier"] ?? "", storedCode.codeChallenge ?? "");
    const usedCodeError = new OauthError(
      "invalid_grant",
      "the code is unknown, expired or used, or does not match client_id, redirect_uri and code_verifier; sign in again",
    );
    if (!isValidCode) throw usedCodeError;
    return this.#issue(client, storedCode.grant, async (manager) => {
      if (!(await this.grants.markSecretUsed(code, manager))) throw usedCodeError;
    });
  }

  async #issueForRefreshToken(client: OauthClient, input: Parameters): Promise<TokenResponse> {
    const token = input["refresh_token"] ?? "";
    const storedToken = await this.grants.findSecret("refresh", token);
    const isValidToken =
      storedToken !== null && storedToken.grant.clientId === client.id && storedToken.expiresAt.getTime() > Date.now();
    const usedTokenError = new OauthError("invalid_grant", "the refresh token is not valid; sign in again");
    if (!isValidToken) throw usedTokenError;
    const { grant } = storedToken;
    const scopes = input["scope"] === undefined ? grant.scopes : parseScopes(input["scope"]);
    const missingScope = scopes.find((scope) => !grant.scopes.includes(scope));
    if (missingScope !== undefined)
      throw new OauthError(
        "invalid_scope",
        `scope may only contain scopes that the person allowed: ${grant.scopes.join(", ")} (got ${missingScope})`,
      );
    return this.#issue(client, { ...grant, scopes }, async (manager) => {
      if (!(await this.grants.markSecretUsed(token, manager))) throw usedTokenError;
    });
  }

  async #issueForDevice(client: OauthClient, input: Parameters): Promise<TokenResponse> {
    const deviceCode = input["device_code"] ?? "";
    const grant = await this.grants.find(await this.devices.poll(deviceCode, client.id));
    if (!grant)
      throw new OauthError("invalid_grant", "the access of the program was revoked or has ended; sign in again");
    return this.#issue(client, grant, (manager) => this.devices.redeem(deviceCode, manager));
  }

  /**
   * Stores new tokens, and marks the old code or token as used (`redeem`). Both happen in one transaction, so that a program can retry
   * after a failure. The access token gets the scopes in `grant`.
   */
  async #issue(
    client: OauthClient,
    grant: OAuthGrant,
    redeem: (manager: SqlClient) => Promise<void>,
  ): Promise<TokenResponse> {
    const [access, refresh] = [generateToken("api"), generateSecret("svc_refresh")];
    const accessOptions = { clientName: client.name, lifetimeMs: ACCESS_TOKEN_LIFETIME_MS };
    const expiresAt = new Date(Date.now() + REFRESH_TOKEN_LIFETIME_MS);
    const lifetimeSeconds = await this.#db.transaction(async (manager) => {
      await this.grants.lockForUse(manager, grant);
      await redeem(manager);
      await this.grants.addSecret("refresh", refresh, grant.id, { expiresAt }, manager);
      return this.grants.addAccessToken(access, grant, accessOptions, manager);
    });
    return {
      access_token: access,
      token_type: "Bearer",
      expires_in: lifetimeSeconds,
      refresh_token: refresh,
      scope: grant.scopes.join(" "),
    };
  }

  async handleRevocationRequest(input: Parameters): Promise<void> {
    const client = await this.#requireClient(input["client_id"]);
    const token = input["token"];
    if (token === undefined) throw new OauthError("invalid_request", "token is required (got nothing)");
    await this.grants.revokeByToken(token, client.id);
  }

  listGrantableApps(personId: number, appId: number | null): Promise<GrantableApp[]> {
    return this.grants.listGrantableApps(personId, appId);
  }
}
