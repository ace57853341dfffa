/**
 * Access tokens of `oauth2` bindings. They are fetched from the token URL, stored encrypted, renewed before they
 * expire, and shared by all processes.
 */
import { createHash } from "node:crypto";
import type { DataSource, EntityManager } from "typeorm";
import { rows } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { OutgoingError, type OutgoingSender, RunBudget } from "../../engine/outgoing.js";
import { isObject } from "../../rules/described.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import type { SecretBinding } from "../../rules/secret-bindings.js";
import type { Settings } from "../settings/settings.js";

/** Time before its expiry at which a token is renewed. */
const RENEWED_BEFORE_MS = 30_000;
/** Assumed lifetime of a token if the token endpoint states none. */
const LIFETIME_MS = 300_000;
const LIFETIME_MAX_MS = 24 * 3_600_000;
const FETCH_LIMIT_MS = 10_000;
/** Maximum number of concurrent fetches, because each holds a database connection while it waits for its endpoint. */
const FETCHES_AT_ONCE = 2;
/** Minimum time between two replacements of a token, because an origin may reject every token. */
const REPLACED_EVERY_MS = 10_000;
/** Maximum number of cached tokens. */
const KNOWN_MAX = 10_000;

interface Token {
  accessToken: string;
  /** Refresh token that the endpoint returned; null if it returned none. */
  refreshToken: string | null;
  /** Time of expiry, as Unix time in milliseconds. */
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
const STORE_TOKEN =
  "UPDATE integration_token SET basis = $4, sealed = $5, updated_at = now() WHERE app_id = $1 AND key = $2 AND origin = $3";

const nameOf = ({ key, origin }: SecretBinding): string => `token:${key}:${origin}`;

/** Returns a hash of the data with which a token was fetched, so that a changed setting or binding makes it invalid. */
const tokenFingerprint = (binding: SecretBinding, value: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify([binding, value]))
    .digest("base64url");

interface Secrets {
  clientSecret: string | null;
  refreshToken: string | null;
}

/** Returns the secrets in the setting's value: the client secret, a refresh token, or both as an object. */
function secretsOf({ key, origin, grant }: SecretBinding, value: unknown): Secrets {
  const isRefresh = grant === "refresh_token";
  if (typeof value === "string") {
    return isRefresh ? { clientSecret: null, refreshToken: value } : { clientSecret: value, refreshToken: null };
  }
  const { clientSecret = null, refreshToken = null } = isObject(value) ? value : {};
  const isText = (field: unknown) => field === null || typeof field === "string";
  if (isText(clientSecret) && isText(refreshToken) && (isRefresh ? refreshToken : clientSecret) !== null) {
    return { clientSecret, refreshToken } as Secrets;
  }
  const expected = isRefresh ? "a refresh token, or an object with refreshToken and clientSecret" : "the client secret";
  throw new OutgoingError("POLICY", `the setting ${key}, which is bound to ${origin}, must be ${expected}`, origin);
}

function formOf(
  { clientId, scopes, grant }: SecretBinding,
  { clientSecret }: Secrets,
  refreshToken: string | null,
): string {
  const form = new URLSearchParams({ grant_type: grant! });
  if (refreshToken !== null) form.set("refresh_token", refreshToken);
  if (scopes.length > 0) form.set("scope", scopes.join(" "));
  // A client with a secret authenticates with the header (RFC 6749, section 2.3.1).
  if (clientSecret === null) form.set("client_id", clientId!);
  return form.toString();
}

function tokenIn(body: Buffer, now: number): Token | null {
  try {
    const { access_token, refresh_token, expires_in } = JSON.parse(body.toString()) as Record<string, unknown>;
    if (typeof access_token !== "string" || access_token.length > 16_384 || !/^[\x21-\x7e]+$/.test(access_token))
      return null;
    const seconds = Number(expires_in);
    const lifetime = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1_000, LIFETIME_MAX_MS) : LIFETIME_MS;
    const refreshToken = typeof refresh_token === "string" ? refresh_token : null;
    return { accessToken: access_token, refreshToken, expiresAt: now + lifetime };
  } catch {
    return null;
  }
}

export type OauthTokens = ReturnType<typeof createOauthTokens>;

export function createOauthTokens(options: {
  db: DataSource;
  settings: Pick<Settings, "sealFor" | "unsealFor">;
  sender: OutgoingSender;
  now?: () => number;
}) {
  const { db, settings, sender, now = Date.now } = options;
  /** Valid tokens that this process has used, by binding. `replacedAt` is set if a token replaced a rejected one. */
  const cachedTokens = new Map<
    string,
    Token & { appId: number; key: string; basis: string; replacedAt: number | null }
  >();
  const pendingFetches = new Map<string, Promise<string>>();
  const fetchSemaphore = new FairSemaphore(FETCHES_AT_ONCE, 1);
  let generation = 0;

  const isFresh = (token: Token): boolean => token.expiresAt - RENEWED_BEFORE_MS > now();

  /** @throws OutgoingError */
  async function requestToken(
    appId: number,
    binding: SecretBinding,
    secrets: Secrets,
    refreshToken: string | null,
  ): Promise<Token> {
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
    const body = Buffer.from(formOf(binding, secrets, refreshToken));
    const response = await sender.send(
      { url, method: "POST", headers, body, timeoutMs: FETCH_LIMIT_MS },
      {
        pool: `${appId} tokens`,
        budget: new RunBudget(),
        mayUse: (requested) => requested === origin,
        originOf: normalizeOrigin,
        hasCredential: true,
        signal: AbortSignal.timeout(FETCH_LIMIT_MS),
      },
    );
    const token = response.status === 200 ? tokenIn(response.body, now()) : null;
    if (token !== null) return token;
    const problem = response.status === 200 ? "no access token" : `the status ${response.status}`;
    throw new OutgoingError(
      "TRANSPORT",
      `the token endpoint ${origin} for the setting ${binding.key} answered with ${problem}`,
      origin,
    );
  }

  async function readStoredToken(
    manager: EntityManager,
    appId: number,
    binding: SecretBinding,
    basis: string,
  ): Promise<Token | null> {
    const tokenKey = [appId, binding.key, binding.origin];
    await rows(manager, INSERT_TOKEN_ROW, tokenKey);
    const [row] = await rows<TokenRow>(manager, LOCK_TOKEN_ROW, tokenKey);
    if (!row?.sealed || row.basis !== basis) return null;
    return JSON.parse(await settings.unsealFor(appId, nameOf(binding), row.sealed)) as Token;
  }

  /**
   * Renews a token. Only one process fetches the token, under the row's lock. Other processes wait, and read the stored
   * token.
   */
  async function renewToken(
    appId: number,
    binding: SecretBinding,
    value: unknown,
    { basis, rejected }: { basis: string; rejected: string | null },
  ): Promise<Token> {
    const secrets = secretsOf(binding, value);
    return db.transaction(async (manager) => {
      const storedToken = await readStoredToken(manager, appId, binding, basis);
      if (storedToken && isFresh(storedToken) && storedToken.accessToken !== rejected) return storedToken;
      const refreshToken =
        binding.grant === "refresh_token" ? (storedToken?.refreshToken ?? secrets.refreshToken) : null;
      const fetchedToken = await requestToken(appId, binding, secrets, refreshToken);
      const token = { ...fetchedToken, refreshToken: fetchedToken.refreshToken ?? refreshToken };
      const sealedToken = await settings.sealFor(manager, appId, nameOf(binding), JSON.stringify(token));
      await rows(manager, STORE_TOKEN, [appId, binding.key, binding.origin, basis, sealedToken]);
      return token;
    });
  }

  return {
    /** Returns a valid access token, other than `rejected` if possible. @throws OutgoingError */
    async accessTokenFor(
      appId: number,
      binding: SecretBinding,
      value: unknown,
      rejected: string | null = null,
    ): Promise<string> {
      const id = `${appId} ${nameOf(binding)}`;
      const basis = tokenFingerprint(binding, value);
      const hit = cachedTokens.get(id);
      const mayReplace = hit?.replacedAt == null || hit.replacedAt + REPLACED_EVERY_MS < now();
      if (hit && hit.basis === basis && isFresh(hit) && !(hit.accessToken === rejected && mayReplace)) {
        return hit.accessToken;
      }
      const pendingFetch = pendingFetches.get(id);
      if (pendingFetch) return pendingFetch;
      const tokenPromise = (async () => {
        const leaveQueue = await fetchSemaphore.enter(appId);
        try {
          const token = await renewToken(appId, binding, value, { basis, rejected });
          if (cachedTokens.size >= KNOWN_MAX) cachedTokens.clear();
          cachedTokens.set(id, {
            ...token,
            appId,
            key: binding.key,
            basis,
            replacedAt: rejected === null ? null : now(),
          });
          generation += 1;
          return token.accessToken;
        } finally {
          leaveQueue();
          pendingFetches.delete(id);
        }
      })();
      pendingFetches.set(id, tokenPromise);
      return tokenPromise;
    },

    /** Returns the app's tokens, each with the key of its binding, so that the tokens can be masked in responses. */
    knownTokens(appId: number): [key: string, token: string][] {
      const appTokens = [...cachedTokens.values()].filter((token) => token.appId === appId);
      return appTokens.flatMap(({ key, accessToken, refreshToken }) => [
        [key, accessToken] as [string, string],
        ...(refreshToken === null ? [] : [[key, refreshToken] as [string, string]]),
      ]);
    },

    /** Returns a number that changes whenever a token was added or replaced, for the cache of scans. */
    generation: (_appId: number): number => generation,
  };
}
