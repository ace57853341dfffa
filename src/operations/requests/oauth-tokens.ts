/** Fetches access tokens of `oauth2` bindings, stores them encrypted for all processes, and renews them before they expire. */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { OutgoingError, type OutgoingRequestSender, RunRequestBudget } from "../../engine/outgoing.js";
import { isObject } from "../../rules/describe-value.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import type { SecretBinding } from "../../rules/secret-bindings.js";
import type { Settings } from "../settings/settings.js";

/** A token is renewed this many milliseconds before it expires. */
const RENEW_BEFORE_EXPIRY_MS = 30_000;
/** Assumed lifetime of a token if the token endpoint does not state the lifetime. */
const DEFAULT_LIFETIME_MS = 300_000;
const LIFETIME_MAX_MS = 24 * 3_600_000;
const FETCH_TIMEOUT_MS = 10_000;
/** Maximum concurrent requests to token endpoints. Each one holds a database connection while it waits for the response. */
const CONCURRENT_FETCHES_MAX = 2;
/** A rejected token is replaced at most once in this many milliseconds, because an origin may reject every token. */
const REPLACEMENT_INTERVAL_MS = 10_000;
/**
 * Maximum attempts to store fetched tokens. After the last attempt, the tokens are lost, even if the provider has already replaced the
 * refresh token.
 */
const STORE_ATTEMPTS_MAX = 60;
const STORE_RETRY_DELAY_MS = 500;
const CACHED_TOKENS_MAX = 10_000;

interface AccessToken {
  accessToken: string;
  /** Refresh token for the next renewal; null if there is none. */
  refreshToken: string | null;
  /** Unix time in milliseconds. */
  expiresAt: number;
}

interface TokenRow {
  basis: string;
  sealed: Buffer | null;
}

const INSERT_TOKEN_ROW =
  "INSERT INTO integration_token (app_id, key, origin, basis) VALUES ($1, $2, $3, '') ON CONFLICT DO NOTHING";
const LOCK_TOKEN_ROW =
  "SELECT basis, sealed FROM integration_token WHERE app_id = $1 AND key = $2 AND origin = $3 FOR UPDATE";
const STORE_ACCESS_TOKEN =
  "UPDATE integration_token SET basis = $4, sealed = $5, updated_at = now() WHERE app_id = $1 AND key = $2 AND origin = $3";

const createEncryptionLabel = ({ key, origin }: SecretBinding): string => `token:${key}:${origin}`;

/** Returns a hash of the binding and the setting's value. A stored token with another hash (`basis`) is not used. */
const computeTokenFingerprint = (binding: SecretBinding, value: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify([binding, value]))
    .digest("base64url");

interface ClientSecrets {
  clientSecret: string | null;
  refreshToken: string | null;
}

/** Returns the secrets in the setting's value: the client secret, a refresh token, or an object that contains both. */
function parseClientSecrets({ key, origin, grant }: SecretBinding, value: unknown): ClientSecrets {
  const isRefresh = grant === "refresh_token";
  if (typeof value === "string") {
    return isRefresh ? { clientSecret: null, refreshToken: value } : { clientSecret: value, refreshToken: null };
  }
  const { clientSecret = null, refreshToken = null } = isObject(value) ? value : {};
  const isText = (field: unknown) => field === null || typeof field === "string";
  if (isText(clientSecret) && isText(refreshToken) && (isRefresh ? refreshToken : clientSecret) !== null) {
    return { clientSecret, refreshToken } as ClientSecrets;
  }
  const expected = isRefresh
    ? "a refresh token, or an object with refreshToken and optionally clientSecret"
    : "the client secret, or an object with clientSecret";
  throw new OutgoingError("POLICY", `the setting ${key}, which is bound to ${origin}, must be ${expected}`, origin);
}

function createTokenRequestForm(
  { clientId, scopes, grant }: SecretBinding,
  { clientSecret }: ClientSecrets,
  refreshToken: string | null,
): string {
  const form = new URLSearchParams({ grant_type: grant! });
  if (refreshToken !== null) form.set("refresh_token", refreshToken);
  if (scopes.length > 0) form.set("scope", scopes.join(" "));
  // A client with a secret authenticates with the Authorization header instead of the form (RFC 6749, section 2.3.1).
  if (clientSecret === null) form.set("client_id", clientId!);
  return form.toString();
}

function parseTokenResponse(body: Buffer, now: number): AccessToken | null {
  try {
    const { access_token, refresh_token, expires_in } = JSON.parse(body.toString()) as Record<string, unknown>;
    if (typeof access_token !== "string" || access_token.length > 16_384 || !/^[\x21-\x7e]+$/.test(access_token))
      return null;
    const seconds = Number(expires_in);
    const lifetime =
      Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1_000, LIFETIME_MAX_MS) : DEFAULT_LIFETIME_MS;
    // Without a new refresh token, the client keeps the previous one. Some providers then send an empty text.
    const refreshToken = typeof refresh_token === "string" && refresh_token !== "" ? refresh_token : null;
    return { accessToken: access_token, refreshToken, expiresAt: now + lifetime };
  } catch {
    return null;
  }
}

interface OauthTokensOptions {
  db: Db;
  settings: Pick<Settings, "sealFor" | "unsealFor">;
  sender: OutgoingRequestSender;
  now?: () => number;
}

export class OauthTokens {
  private readonly now = this.options.now ?? Date.now;
  /** Valid tokens by binding. `replacedAt` is set if the token replaced a rejected token. `version` is the version of the app's secrets. */
  private readonly cachedTokens = new Map<
    string,
    AccessToken & { appId: number; key: string; basis: string; version: number; replacedAt: number | null }
  >();
  private readonly pendingFetches = new Map<string, Promise<string>>();
  private readonly fetchSemaphore = new FairSemaphore(CONCURRENT_FETCHES_MAX, 1);
  private changeCount = 0;

  constructor(private readonly options: OauthTokensOptions) {}

  private isFresh(token: AccessToken): boolean {
    return token.expiresAt - RENEW_BEFORE_EXPIRY_MS > this.now();
  }

  private async requestToken(
    appId: number,
    binding: SecretBinding,
    secrets: ClientSecrets,
    refreshToken: string | null,
  ): Promise<AccessToken> {
    const url = new URL(binding.tokenUrl!);
    const origin = normalizeOrigin(url)!;
    const userAndPassword = `${encodeURIComponent(binding.clientId!)}:${encodeURIComponent(secrets.clientSecret ?? "")}`;
    const headers = {
      accept: "application/json",
      "content-type": "application/x-www-form-urlencoded",
      ...(secrets.clientSecret !== null && {
        authorization: `Basic ${Buffer.from(userAndPassword).toString("base64")}`,
      }),
    };
    const body = Buffer.from(createTokenRequestForm(binding, secrets, refreshToken));
    const response = await this.options.sender.send(
      { url, method: "POST", headers, body, timeoutMs: FETCH_TIMEOUT_MS },
      {
        pool: `${appId} tokens`,
        budget: new RunRequestBudget(),
        mayUseOrigin: (requested) => requested === origin,
        originOf: normalizeOrigin,
        hasCredential: true,
        signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
      },
    );
    const token = response.status === 200 ? parseTokenResponse(response.body, this.now()) : null;
    if (token !== null) return token;
    const problem = response.status === 200 ? "no valid access token" : `the status ${response.status}`;
    throw new OutgoingError(
      "TRANSPORT",
      `the token endpoint ${origin} for the setting ${binding.key} answered with ${problem}`,
      origin,
    );
  }

  private async readStoredToken(
    manager: EntityManager,
    appId: number,
    binding: SecretBinding,
    basis: string,
  ): Promise<AccessToken | null> {
    const tokenKey = [appId, binding.key, binding.origin];
    await rows(manager, INSERT_TOKEN_ROW, tokenKey);
    const [row] = await rows<TokenRow>(manager, LOCK_TOKEN_ROW, tokenKey);
    if (!row?.sealed || row.basis !== basis) return null;
    return JSON.parse(
      await this.options.settings.unsealFor(appId, createEncryptionLabel(binding), row.sealed, manager),
    ) as AccessToken;
  }

  /**
   * Requests a new token and stores it. If another process is already doing this, waits for the lock of the row, and returns the stored
   * token.
   */
  private async renewToken(
    appId: number,
    binding: SecretBinding,
    value: unknown,
    { basis, rejectedToken }: { basis: string; rejectedToken: string | null },
  ): Promise<AccessToken> {
    const { db, settings } = this.options;
    const secrets = parseClientSecrets(binding, value);
    let token: AccessToken | null = null;
    const storeToken = async (manager: EntityManager): Promise<AccessToken> => {
      const storedToken = await this.readStoredToken(manager, appId, binding, basis);
      if (storedToken && this.isFresh(storedToken) && storedToken.accessToken !== rejectedToken) return storedToken;
      const refreshToken =
        binding.grant === "refresh_token" ? (storedToken?.refreshToken ?? secrets.refreshToken) : null;
      if (token === null) {
        const fetchedToken = await this.requestToken(appId, binding, secrets, refreshToken);
        token = { ...fetchedToken, refreshToken: fetchedToken.refreshToken ?? refreshToken };
      }
      const sealedToken = await settings.sealFor(manager, appId, createEncryptionLabel(binding), JSON.stringify(token));
      await rows(manager, STORE_ACCESS_TOKEN, [appId, binding.key, binding.origin, basis, sealedToken]);
      return token;
    };
    for (let attemptsLeft = STORE_ATTEMPTS_MAX - 1; ; attemptsLeft -= 1) {
      try {
        return await db.transaction(storeToken);
      } catch (error) {
        // Stores the fetched token again instead of fetching another, because the provider may have revoked the previous refresh token.
        if (token === null || attemptsLeft === 0) throw error;
        await delay(STORE_RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
  }

  /**
   * Returns a valid access token of the binding. `value` is the value of the setting at the version `version` of the app's secrets.
   * @param rejectedToken token that the origin has rejected; the returned token differs from it if possible
   * @throws OutgoingError
   */
  async getAccessToken(
    appId: number,
    binding: SecretBinding,
    { value, version }: { value: unknown; version: number },
    rejectedToken: string | null = null,
  ): Promise<string> {
    const id = `${appId} ${createEncryptionLabel(binding)}`;
    const basis = computeTokenFingerprint(binding, value);
    const hit = this.cachedTokens.get(id);
    const mayReplace = hit?.replacedAt == null || hit.replacedAt + REPLACEMENT_INTERVAL_MS < this.now();
    const isCurrent = hit?.basis === basis && hit.version === version;
    if (hit && isCurrent && this.isFresh(hit) && !(hit.accessToken === rejectedToken && mayReplace))
      return hit.accessToken;
    const pendingFetch = this.pendingFetches.get(id);
    if (pendingFetch) return pendingFetch;
    const getPreviousReplacedAt = (token: AccessToken) =>
      hit?.accessToken === token.accessToken ? hit.replacedAt : null;
    const tokenPromise = (async () => {
      const releaseFetchSlot = await this.fetchSemaphore.enter(appId);
      try {
        const token = await this.renewToken(appId, binding, value, { basis, rejectedToken });
        if (this.cachedTokens.size >= CACHED_TOKENS_MAX) this.cachedTokens.clear();
        this.cachedTokens.set(id, {
          ...token,
          appId,
          key: binding.key,
          basis,
          version,
          replacedAt: rejectedToken === null ? getPreviousReplacedAt(token) : this.now(),
        });
        this.changeCount += 1;
        return token.accessToken;
      } finally {
        releaseFetchSlot();
        this.pendingFetches.delete(id);
      }
    })();
    this.pendingFetches.set(id, tokenPromise);
    return tokenPromise;
  }

  /** Returns the app's cached access and refresh tokens, each with the key of its setting. The service masks them in responses. */
  listKnownTokens(appId: number): [key: string, token: string][] {
    const appTokens = [...this.cachedTokens.values()].filter((token) => token.appId === appId);
    return appTokens.flatMap(({ key, accessToken, refreshToken }) => [
      [key, accessToken] as [string, string],
      ...(refreshToken === null ? [] : [[key, refreshToken] as [string, string]]),
    ]);
  }

  /** Returns a number that changes with each added or replaced token. A cached secret scanner is valid while the number stays the same. */
  getGeneration(_appId: number): number {
    return this.changeCount;
  }
}
