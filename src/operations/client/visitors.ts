/**
 * Creates and extends sessions of visitors whose pages are on origins that an editor has listed. Limits the number of all
 * visitor sessions per network address range and per app. `page-sessions.ts` creates the sessions for the app's own page.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import {
  RATE_WINDOW_MS,
  VISITOR_SESSION_LIFETIME_MS,
  VISITOR_SESSION_RENEWED_LIFETIME_MAX_MS,
  VISITOR_SESSIONS_PER_ADDRESS_MAX,
  VISITOR_SESSIONS_PER_APP_MAX,
} from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { describeValue } from "../../rules/describe-value.js";
import { parseExternalPageOrigins } from "../../rules/page-origins.js";
import { type ExpectedVersions, NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { recordChange } from "../records/audit.js";
import { transactWithAppLock } from "../settings/app-lock.js";

/** Session in the form that a page receives (contract, section 7). `expiresAt` is ISO 8601. */
export interface VisitorSession {
  token: string;
  expiresAt: string;
}

export interface VisitorSessionRequest {
  appId: number;
  /** Header `Origin` of the request; undefined if the request has no such header. */
  origin: string | undefined;
  address: string;
  /** The page's current session, which the request extends if possible; null if the page has no session. */
  current: { caller: Caller; token: string } | null;
}

/** Time in milliseconds for which `isListed` caches results, so that new WebSocket connections cause few queries. */
const LISTED_ORIGIN_CACHE_MS = 5_000;
const LISTED_ORIGIN_CACHE_MAX_ENTRIES = 1_000;
const ORIGIN_MAX_CHARACTERS = 300;
const SELECT_LISTED_ORIGIN = "SELECT 1 FROM app WHERE origins @> ARRAY[$1::text] LIMIT 1";

/** Maximum number of old sessions of a network address range that one request deletes, so that the visitor does not wait long. */
const MAX_SESSIONS_PER_DELETE = 100;
/**
 * The check of an app's number of sessions reads many index entries. So a process makes this check only for every 100th new session. One
 * check deletes at most SESSIONS_PER_APP_CHECK times MAX_SESSIONS_PER_DELETE sessions.
 */
const SESSIONS_PER_APP_CHECK = 100;

/* SQL condition for sessions without a signed-in user. Their visitors lose nothing if these sessions are replaced. */
const HAS_NO_SIGNED_IN_USER = "NOT EXISTS (SELECT FROM app_user_session AS session WHERE session.credential_id = c.id)";

/** Counts sessions. $1 is the app, $2 the hash of the network address range, $3 the number of sessions at which counting stops. */
const COUNT_SESSIONS_OF_ADDRESS = `
  SELECT count(*)::int AS count FROM
    (SELECT FROM credential WHERE app_id = $1 AND visitor_block = $2 LIMIT $3) AS sessions`;
/* Deletes the oldest sessions of one network address range. $1 is the app, $2 the hash of the range. */
const DELETE_SESSIONS_OF_ADDRESS = `
  DELETE FROM credential WHERE id IN (
    SELECT id FROM credential AS c WHERE app_id = $1 AND visitor_block = $2 AND ${HAS_NO_SIGNED_IN_USER}
     ORDER BY id LIMIT ${MAX_SESSIONS_PER_DELETE} FOR UPDATE SKIP LOCKED) RETURNING id`;

/* Deletes the oldest sessions of an app. $1 is the app, $2 the number of sessions to keep. */
const DELETE_SESSIONS_OF_APP = `
  DELETE FROM credential WHERE id IN (
    SELECT id FROM credential AS c WHERE app_id = $1 AND visitor_block IS NOT NULL AND ${HAS_NO_SIGNED_IN_USER}
       AND id <= (SELECT id FROM credential WHERE app_id = $1 AND visitor_block IS NOT NULL ORDER BY id DESC OFFSET $2 LIMIT 1)
     ORDER BY id LIMIT ${MAX_SESSIONS_PER_DELETE * SESSIONS_PER_APP_CHECK} FOR UPDATE SKIP LOCKED) RETURNING id`;

/**
 * Extends a session. $1 is the credential, $2 the app, $3 the new lifetime from now and $4 the maximum lifetime since the creation, both in
 * milliseconds. Changes nothing if $4 does not allow the whole new lifetime.
 */
const RENEW_VISITOR = `
  UPDATE credential SET expires_at = least(now() + $3::float8 * interval '1 millisecond',
                                            created_at + $4::float8 * interval '1 millisecond')
   WHERE id = $1 AND app_id = $2 AND visitor_block IS NOT NULL AND revoked_at IS NULL
     AND created_at > now() - ($4::float8 - $3::float8) * interval '1 millisecond'
  RETURNING expires_at AS "expiresAt"`;

/** Returns a hash of the visitor's network address range. The database stores this hash, so that it contains no address of a visitor. */
export const hashVisitorAddress = (appId: number, address: string): Buffer =>
  createHash("sha256")
    .update(`${appId} ${getAddressBlock(address)}`)
    .digest()
    .subarray(0, 16);

/** List of the origins whose pages can start visitor sessions of the app. `updatedAt` is the time of the app's last change, ISO 8601. */
export interface AllowedVisitorOrigins {
  origins: string[];
  updatedAt: string;
}

type StoredOrigins = Pick<AllowedVisitorOrigins, "origins"> & { updatedAt: Date };

const SELECT_ORIGINS = `SELECT origins, updated_at AS "updatedAt" FROM app WHERE id = $1`;
const SET_ORIGINS = `UPDATE app SET origins = $2, updated_at = ${NEXT_UPDATED_AT_SQL} WHERE id = $1
  RETURNING origins, updated_at AS "updatedAt"`;

const toListedOrigins = ({ origins, updatedAt }: StoredOrigins): AllowedVisitorOrigins => ({
  origins,
  updatedAt: updatedAt.toISOString(),
});

interface VisitorSessionsOptions {
  db: Db;
  /** Creates a visitor's session for the network address, and returns its token. @throws RATE_LIMIT_EXCEEDED */
  startVisitorSession: (appId: number, address: string, expiresAt: Date) => Promise<string>;
  /** Counts a request for a visitor's session in the limit of the network address. @throws RATE_LIMIT_EXCEEDED */
  countVisitorSession: (address: string) => void;
  allowHttp: boolean;
}

export class VisitorSessions {
  private readonly listedOrigins = new LRUCache<string, boolean>({
    max: LISTED_ORIGIN_CACHE_MAX_ENTRIES,
    ttl: LISTED_ORIGIN_CACHE_MS,
  });

  constructor(private readonly options: VisitorSessionsOptions) {}

  private async readOrigins(appId: number): Promise<{ origins: string[]; isPublished: boolean } | null> {
    const sql = `SELECT origins, published_at IS NOT NULL AS "isPublished" FROM app WHERE id = $1`;
    return (await rows<{ origins: string[]; isPublished: boolean }>(this.options.db, sql, [appId]))[0] ?? null;
  }

  private async renewVisitor(appId: number, { caller, token }: { caller: Caller; token: string }) {
    const values = [caller.credentialId, appId, VISITOR_SESSION_LIFETIME_MS, VISITOR_SESSION_RENEWED_LIFETIME_MAX_MS];
    const [renewedSession] = await rows<{ expiresAt: Date }>(this.options.db, RENEW_VISITOR, values);
    return renewedSession ? { token, expiresAt: renewedSession.expiresAt.toISOString() } : null;
  }

  /** True if at least one app has the origin in its list of page origins. */
  async isListed(origin: string): Promise<boolean> {
    const cachedIsListed = this.listedOrigins.get(origin);
    if (cachedIsListed !== undefined) return cachedIsListed;
    const isListed =
      origin.length <= ORIGIN_MAX_CHARACTERS &&
      (await rows(this.options.db, SELECT_LISTED_ORIGIN, [origin])).length > 0;
    this.listedOrigins.set(origin, isListed);
    return isListed;
  }

  async listOrigins(appId: number): Promise<AllowedVisitorOrigins> {
    const [app] = await rows<StoredOrigins>(this.options.db, SELECT_ORIGINS, [appId]);
    if (!app) throw new ActionError("APP_NOT_FOUND");
    return toListedOrigins(app);
  }

  /** Replaces the app's list of page origins. @throws REQUEST_INVALID, RESOURCE_CHANGED */
  async setOrigins(
    caller: Caller,
    { appId, precondition }: { appId: number; precondition: ExpectedVersions },
    input: unknown,
  ): Promise<AllowedVisitorOrigins> {
    const { db, allowHttp } = this.options;
    const origins = parseExternalPageOrigins(input, allowHttp);
    throwIfUnknownField(caller);
    return transactWithAppLock(db, appId, async (manager) => {
      const [before] = await rows<StoredOrigins>(manager, SELECT_ORIGINS, [appId]);
      requireExpectedVersion(toListedOrigins(before!), precondition);
      const [app] = await rows<StoredOrigins>(manager, SET_ORIGINS, [appId, origins]);
      await recordChange(manager, caller, { appId, type: "app.origins", data: { origins } });
      return toListedOrigins(app!);
    });
  }

  /**
   * Creates a session for a page on one of the app's listed origins. If the page has a session that can be extended,
   * extends this session instead.
   * @throws FORBIDDEN for other origins, even if the app does not exist; APP_NOT_PUBLISHED, RATE_LIMIT_EXCEEDED
   */
  async create({ appId, origin, address, current }: VisitorSessionRequest): Promise<VisitorSession> {
    const { startVisitorSession, countVisitorSession } = this.options;
    countVisitorSession(address);
    const app = await this.readOrigins(appId);
    if (origin === undefined || !app?.origins.includes(origin)) {
      throw new ActionError(
        "FORBIDDEN",
        `the page's origin must be in the app's list of origins (got ${describeValue(origin)}); an editor can add the origin`,
      );
    }
    if (!app.isPublished) throw new ActionError("APP_NOT_PUBLISHED");
    const renewedSession = current?.caller.kind === "live" ? await this.renewVisitor(appId, current) : null;
    if (renewedSession) return renewedSession;
    const expiresAt = new Date(Date.now() + VISITOR_SESSION_LIFETIME_MS);
    return { token: await startVisitorSession(appId, address, expiresAt), expiresAt: expiresAt.toISOString() };
  }
}

/**
 * Returns a function that limits the visitor sessions of each network address range and of each app. Call the function
 * before you create a session. If the number of sessions has reached a limit, it deletes the oldest sessions without a
 * signed-in user. It throws RATE_LIMIT_EXCEEDED if app users are signed in to all sessions of a full address range.
 */
export function createVisitorSessionPruner() {
  let newSessionCount = 0;
  return async function removeOldestVisitors(executor: SqlClient, appId: number, addressHash: Buffer): Promise<void> {
    newSessionCount += 1;
    if (newSessionCount % SESSIONS_PER_APP_CHECK === 0)
      await rows(executor, DELETE_SESSIONS_OF_APP, [appId, VISITOR_SESSIONS_PER_APP_MAX]);
    const [sessionCount] = await rows<{ count: number }>(executor, COUNT_SESSIONS_OF_ADDRESS, [
      appId,
      addressHash,
      VISITOR_SESSIONS_PER_ADDRESS_MAX,
    ]);
    if (sessionCount!.count < VISITOR_SESSIONS_PER_ADDRESS_MAX) return;
    const removedVisitors = await rows(executor, DELETE_SESSIONS_OF_ADDRESS, [appId, addressHash]);
    if (removedVisitors.length === 0)
      throw createRateLimitError(
        "app users are signed in to all sessions that this network address can have; sign out in one of them first",
        RATE_WINDOW_MS / 1000,
      );
  };
}
