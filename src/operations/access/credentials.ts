/** Issues credentials, finds the caller of a token, and revokes credentials in all processes of the service. */
import { hash } from "node:crypto";
import { isClosedStageSql } from "../../data/app.js";
import type { CredentialKind } from "../../data/credential.js";
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import {
  PERSON_SESSION_IDLE_TIMEOUT_MS,
  PERSON_SESSION_LIFETIME_MAX_MS,
  RATE_WINDOW_MS,
  UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE,
} from "../../limits.js";
import type { Caller, TokenScope } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { getHighestRole, isRoleAbove, type Role } from "../../rules/roles.js";
import { IS_CREDENTIAL_VALID_SQL } from "./credential-validity.js";
import { generateToken, hashToken, isWellFormedToken } from "./tokens.js";

/**
 * PostgreSQL notification channel. A message is the ID of a credential that has ended. An empty message means that the
 * rights of any credential or person may have changed.
 */
export const CREDENTIAL_CHANNEL = "svc_credential";

/** Milliseconds for which the caller of a token is cached. A process that misses a revocation accepts the token for up to this time. */
const CALLER_CACHE_MS = 5_000;
const CALLER_CACHE_MAX_ENTRIES = 10_000;

export interface NewCredential {
  kind: CredentialKind;
  appId?: number | null;
  personId?: number | null;
  runId?: number | null;
  name?: string | null;
  expiresAt?: Date | null;
  /** True for the credential of an app page that the service serves. IS_CREDENTIAL_VALID_SQL defines when this credential ends. */
  isPageSession?: boolean;
  parentId?: number | null;
  actionId?: number | null;
  /** Hash of the network address range for which a visitor's session was created. Missing for other credentials. */
  visitorAddressHash?: Buffer | null;
  /** Scopes of an API token; null if the token has all rights. */
  scopes?: readonly TokenScope[] | null;
  /** Secret to use as the token. If it is missing, the service generates a random token. */
  secret?: string | undefined;
}

interface CredentialRow {
  id: number;
  kind: CredentialKind;
  appId: number | null;
  personId: number | null;
  runId: number | null;
  expiresAt: Date | null;
  actionId: number | null;
  runCopy: "master" | "production" | null;
  runDepth: number | null;
  scopes: TokenScope[] | null;
  roles: [appId: number, role: Role][] | null;
  organizations: [organizationId: number, role: Role][] | null;
  /** For an OAuth token: app roles of the person who authorized it; also `owner` for an administrator. Null for all other credentials. */
  grantRoles: Role[] | null;
  session: "full" | "provisional" | null;
  /** For a person's session: true if `last_used_at` must be updated, because it is more than a minute old. Null for other credentials. */
  needsSessionUpdate: boolean | null;
  /** True if `last_used_at` of a token must be updated: it is empty or more than a minute old. Always false for sessions and run tokens. */
  needsLastUseUpdate: boolean;
}

/** Selects the valid credential with the hash $1. */
const SELECT_CREDENTIAL = `
  SELECT c.id, CASE WHEN person.is_administrator AND NOT session.is_provisional THEN 'admin' ELSE c.kind END AS kind,
         c.app_id AS "appId", c.person_id AS "personId", c.run_id AS "runId",
         least(c.expires_at, CASE WHEN c.page_session THEN (SELECT expires_at FROM credential p WHERE p.id = c.parent_id) END)
           AS "expiresAt",
         CASE WHEN c.grant_id IS NOT NULL THEN ARRAY(
           SELECT 'owner' FROM person g WHERE g.id = c.person_id AND g.is_administrator
           UNION ALL SELECT role FROM app_role g WHERE g.person_id = c.person_id AND g.app_id = c.app_id) END AS "grantRoles",
         c.action_id AS "actionId", c.scopes, run.copy AS "runCopy", run.depth AS "runDepth",
         CASE WHEN c.kind = 'editor' AND session.is_provisional IS NOT TRUE THEN
           (SELECT json_agg(json_build_array(app_id, role)) FROM app_role AS granted
             WHERE person_id = c.person_id AND NOT ${isClosedStageSql("granted.app_id")}) END AS roles,
         CASE WHEN c.kind = 'editor' AND session.is_provisional IS NOT TRUE THEN
           (SELECT json_agg(json_build_array(organization_id, role)) FROM organization_member
             WHERE person_id = c.person_id) END AS organizations,
         CASE WHEN session.is_provisional THEN 'provisional' WHEN NOT session.is_provisional THEN 'full' END AS session,
         session.last_used_at < now() - interval '1 minute' AS "needsSessionUpdate",
         session.credential_id IS NULL AND NOT c.page_session AND c.kind <> 'task'
           AND (c.last_used_at IS NULL OR c.last_used_at < now() - interval '1 minute') AS "needsLastUseUpdate"
    FROM credential c LEFT JOIN run ON run.id = c.run_id
         LEFT JOIN person_session session ON session.credential_id = c.id
         LEFT JOIN person ON person.id = session.person_id
   WHERE c.hash = $1 AND ${IS_CREDENTIAL_VALID_SQL}`;

/**
 * Extends a session in use, and stores the time at which its person was last seen. If the person's row is locked, does not store this time,
 * because waiting for the lock could cause a deadlock.
 */
const RENEW_CREDENTIAL = `
  WITH used AS (
    UPDATE person_session SET last_used_at = now(), address = coalesce($2, address) WHERE credential_id = $1
    RETURNING created_at, person_id),
  seen AS (
    UPDATE person SET last_seen_at = now() WHERE id IN (
      SELECT person.id FROM person JOIN used ON person.id = used.person_id FOR NO KEY UPDATE OF person SKIP LOCKED))
  UPDATE credential
     SET expires_at = least(now() + $3 * interval '1 millisecond', used.created_at + $4 * interval '1 millisecond')
    FROM used WHERE credential.id = $1 RETURNING credential.expires_at AS "expiresAt"`;

const MARK_CREDENTIAL_USED = `
  UPDATE credential SET last_used_at = now(), last_used_address = coalesce($2, last_used_address)
   WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;

const INSERT_CREDENTIAL = `
  INSERT INTO credential (kind, hash, name, app_id, person_id, run_id, expires_at, page_session, parent_id, action_id,
                          visitor_block, scopes)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id`;

const EXPIRE_CREDENTIAL = `
  WITH ended AS (UPDATE credential SET expires_at = now() WHERE id = $1 RETURNING id)
  SELECT pg_notify('${CREDENTIAL_CHANNEL}', id::text) FROM ended`;

/** Receives the ID of a credential that has ended, or null if any credential or any person's rights may have changed. */
type CredentialWatcher = (id: number | null) => void;

function selectHighestRoleByApp(roles: readonly [appId: number, role: Role][]): Map<number, Role> {
  const highestRoles = new Map<number, Role>();
  for (const [appId, role] of roles)
    if (isRoleAbove(role, highestRoles.get(appId) ?? null)) highestRoles.set(appId, role);
  return highestRoles;
}

function toCaller(row: CredentialRow): Caller {
  return {
    credentialId: row.id,
    kind: row.kind,
    personId: row.personId,
    appId: row.appId,
    roles: selectHighestRoleByApp(row.roles ?? []),
    organizations: new Map(row.organizations ?? []),
    scopes: row.scopes,
    ...(row.grantRoles && { grantor: getHighestRole(row.grantRoles) }),
    runId: row.runId,
    runDepth: row.runDepth ?? 0,
    debugActionId: row.actionId,
    copy: row.runCopy ?? (row.kind === "api" || row.kind === "live" || row.kind === "task" ? "production" : "master"),
    expiresAt: row.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    ...(row.session && { session: row.session }),
  };
}

const createTokenCacheKey = (token: string): string => hash("sha256", token, "base64");

/** Limits unknown tokens per network address, and caches them for CALLER_CACHE_MS so that they cause no further query. */
class UnknownTokenLimiter {
  private readonly recentlyUnknownKeys = createBoundedCache<string, true>(CALLER_CACHE_MAX_ENTRIES, {
    ttl: CALLER_CACHE_MS,
  });
  /** Cache keys of tokens that were valid in this process before. The limit of unknown tokens per address never blocks these tokens. */
  private readonly previouslyValidKeys = createBoundedCache<string, true>(CALLER_CACHE_MAX_ENTRIES);
  private readonly unknownTokenBucket = createTokenBucket({
    limit: UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
    clock: this.clock,
  });

  constructor(private readonly clock = () => performance.now()) {}

  has(key: string): boolean {
    return this.recentlyUnknownKeys.has(key);
  }

  add(key: string): void {
    this.recentlyUnknownKeys.set(key, true);
  }

  markValid(key: string): void {
    this.previouslyValidKeys.set(key, true);
  }

  clear() {
    this.recentlyUnknownKeys.clear();
  }

  /**
   * Checks that the address may send a token that is not in the cache.
   * @throws RATE_LIMIT_EXCEEDED if the address has sent too many unknown tokens, unless this token was valid in this process before
   */
  checkRate(key: string, address: string | undefined): void {
    if (address === undefined || this.previouslyValidKeys.has(key)) return;
    const retryAfter = this.unknownTokenBucket.takeTokens(getAddressBlock(address), 0);
    if (retryAfter > 0) {
      const message = `too many unknown tokens from this address; check the token, and try again in ${retryAfter} s`;
      throw createRateLimitError(message, retryAfter);
    }
  }

  /** Counts an unknown token. Call this method only after a lookup found no credential: until then, the token may be valid. */
  countMiss(key: string, address: string | undefined): void {
    if (address !== undefined && !this.previouslyValidKeys.has(key))
      this.unknownTokenBucket.charge(getAddressBlock(address), 1);
  }
}

interface CredentialsOptions {
  db: Db;
  notifications: DatabaseNotifications;
  /** Clock in milliseconds for the limit of unknown tokens. Tests pass their own clock. */
  rateClock?: () => number;
}

export class Credentials {
  private readonly callersByHash = createBoundedCache<string, Caller>(CALLER_CACHE_MAX_ENTRIES, {
    ttl: CALLER_CACHE_MS,
  });
  private readonly unknownTokens = new UnknownTokenLimiter(this.options.rateClock);
  /** Key in `callersByHash` for each run token that this process issued, by credential ID. The key is "" until the token is first used. */
  private readonly runTokenKeys = createBoundedCache<number, string>(CALLER_CACHE_MAX_ENTRIES);
  private readonly watchers = new Set<CredentialWatcher>();
  private rightsEpoch = 0;

  constructor(private readonly options: CredentialsOptions) {
    const { notifications } = options;
    notifications.listen(CREDENTIAL_CHANNEL, (id) => {
      if (id === "") return this.clearLocalCallerCache();
      for (const watcher of this.watchers) watcher(Number(id));
    });
    notifications.onGap(() => this.clearLocalCallerCache());
  }

  private clearLocalCallerCache() {
    this.rightsEpoch += 1;
    this.callersByHash.clear();
    this.unknownTokens.clear();
    for (const watcher of this.watchers) watcher(null);
  }

  /** Extends the expiry of a session. After a database error, the session keeps its old expiry: the database may be read-only. */
  private async renewExpiry({ id, expiresAt }: CredentialRow, address: string): Promise<Date | null> {
    const values = [id, address, PERSON_SESSION_IDLE_TIMEOUT_MS, PERSON_SESSION_LIFETIME_MAX_MS];
    const renewedRows = await rows<{ expiresAt: Date }>(this.options.db, RENEW_CREDENTIAL, values).catch(() => []);
    return renewedRows[0]?.expiresAt ?? expiresAt;
  }

  /** Makes all processes clear their caches of callers, because rights have changed. This process clears its cache at once. */
  async clearCallerCaches(executor: SqlClient = this.options.db): Promise<void> {
    await executor.query(`SELECT pg_notify('${CREDENTIAL_CHANNEL}', '')`);
    this.clearLocalCallerCache();
  }

  /** Calls `watcher` whenever a credential or a person's rights may have changed. Returns a function that unsubscribes. */
  watch(watcher: CredentialWatcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Creates a credential. Only the return value contains the token; the database stores a hash of the token. */
  async issue(
    credential: NewCredential,
    executor: SqlClient = this.options.db,
  ): Promise<{ id: number; token: string }> {
    const { kind, appId = null, personId = null, runId = null, name = null, expiresAt = null } = credential;
    const { isPageSession = false, parentId = null, actionId = null, secret: token = generateToken(kind) } = credential;
    const { visitorAddressHash = null, scopes = null } = credential;
    const credentialValues = [kind, hashToken(token), name, appId, personId, runId, expiresAt];
    const values = [...credentialValues, isPageSession, parentId, actionId, visitorAddressHash, scopes];
    const [row] = await queryPreparedRows<{ id: number }>(executor, "issue-credential", INSERT_CREDENTIAL, values);
    this.unknownTokens.markValid(createTokenCacheKey(token));
    if (kind === "task") this.runTokenKeys.set(row!.id, "");
    return { id: row!.id, token };
  }

  /**
   * Returns the caller of the token, or null if the token is unknown, revoked or expired. A malformed token causes no database query.
   * Another token that was unknown within the last five seconds normally causes no query either.
   * @param address network address of the sender; unknown tokens are counted per address
   * @throws ActionError RATE_LIMIT_EXCEEDED if the address sent too many unknown tokens and this token was never valid in this process
   */
  async resolve(token: string, address?: string): Promise<Caller | null> {
    const { db, notifications } = this.options;
    if (!isWellFormedToken(token)) return null;
    const key = createTokenCacheKey(token);
    const hit = this.callersByHash.get(key);
    if (hit && hit.expiresAt > Date.now() && notifications.isHealthy()) return hit;
    if (this.unknownTokens.has(key) && notifications.isHealthy()) return null;
    this.unknownTokens.checkRate(key, address);
    const epochBefore = this.rightsEpoch;
    const [row] = await queryPreparedRows<CredentialRow>(db, "find-credential", SELECT_CREDENTIAL, [hashToken(token)]);
    if (!row) {
      this.unknownTokens.countMiss(key, address);
      if (epochBefore === this.rightsEpoch) this.unknownTokens.add(key);
      return null;
    }
    this.unknownTokens.markValid(key);
    if (row.needsSessionUpdate && address !== undefined) row.expiresAt = await this.renewExpiry(row, address);
    // Stores the time of the token's last use without waiting. Ignores an error, because the database may be read-only.
    if (row.needsLastUseUpdate) rows(db, MARK_CREDENTIAL_USED, [row.id, address ?? null]).catch(() => undefined);
    const caller = toCaller(row);
    // When a run ends, only the process that issued the run's token removes the token from the cache. So other processes must not cache it.
    const isCacheable = row.kind !== "task" || this.runTokenKeys.has(row.id);
    // If rights changed during the query, the caller that the query returned may be outdated. So it is not cached.
    if (epochBefore !== this.rightsEpoch || !isCacheable) return caller;
    this.callersByHash.set(key, caller);
    if (row.kind === "task") this.runTokenKeys.set(row.id, key);
    return caller;
  }

  /** Ends a run's token. Other processes, which do not cache the token, are notified so that they close connections that use it. */
  async expire(id: number): Promise<void> {
    const key = this.runTokenKeys.get(id);
    this.runTokenKeys.delete(id);
    if (key) this.callersByHash.delete(key);
    await this.options.db.query(EXPIRE_CREDENTIAL, [id]);
  }

  /**
   * Revokes a credential of the app. If `appId` is null, the credential can belong to any app. In a transaction, call `clearCallerCaches`
   * again after the commit, because this process may have cached the credential again before the commit.
   * @throws ActionError NOT_FOUND
   */
  async revoke(id: number, appId: number | null, executor: SqlClient = this.options.db): Promise<void> {
    const revokedRows = await rows(
      executor,
      `UPDATE credential SET revoked_at = now()
          WHERE id = $1 AND revoked_at IS NULL AND ($2::bigint IS NULL OR app_id = $2) RETURNING id`,
      [id, appId],
    );
    if (revokedRows.length === 0) throw new ActionError("NOT_FOUND", "no such token");
    await this.clearCallerCaches(executor);
  }
}
