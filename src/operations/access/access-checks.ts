/**
 * Checks before each operation: the caller's rights, the app's rate limit and the free disk space. The permission table is in
 * rules/access.ts.
 */
import type { Config } from "../../config.js";
import { type Db, rows } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import type { DiskSpaceLevel, DiskSpaceMonitor } from "../../engine/disk-space.js";
import type { RateLimitDecision, RateWindow } from "../../engine/rate-window.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { LOW_DISK_RETRY_SECONDS, RATE_WINDOW_MS, VISITORS_RATE_LIMIT_SHARE } from "../../limits.js";
import {
  ADDED_RESOURCE_BY_OPERATION,
  type Caller,
  getRateLimitClass,
  getRateLimitWindowMs,
  isPageCaller,
  mayPerformOnApp,
  mayPerformOnOrganization,
  mayPerformOnService,
  type Operation,
  type RateLimitClass,
} from "../../rules/access.js";

/** Request data for the access checks. The checks set `quota`: the remaining requests that the response headers report. */
export interface AccessCheckInput {
  caller: Caller | null;
  /** Network address that sent the request. */
  address?: string;
  quota?: RateLimitDecision & { limit: number };
  /** Error of an invalid request. It is thrown after the check of the caller's rights, so that callers without rights do not see it. */
  deferredError?: ActionError;
  /** Error for an unknown field in the body. The operation throws it after all other checks have passed. */
  unknownField?: ActionError;
}

export function throwDeferredError({ deferredError }: Pick<AccessCheckInput, "deferredError">): void {
  if (deferredError) throw deferredError;
}

export interface AdmittedRequest {
  /** Null if the request has no credential. */
  caller: Caller | null;
  /** True if the permission table allows the operation. If false, the app's access rules decide. */
  isTrusted: boolean;
  /** Network address that sent the request. */
  address?: string;
  /** Error of an invalid request. The operation throws it after the access rules have allowed the request. */
  deferredError?: ActionError;
  unknownField?: ActionError;
}

const addRequestToCaller = (caller: Caller, { address, unknownField }: AccessCheckInput): Caller => ({
  ...caller,
  ...(address !== undefined && { address }),
  ...(unknownField && { unknownField }),
});

export interface AccessChecks {
  /** True if the app exists. A positive result is cached for 5 seconds. */
  appExists(appId: number): Promise<boolean>;
  /**
   * Checks that the caller may use `operation` on the app, and counts the request if the operation has a rate limit.
   * @throws UNAUTHORIZED, FORBIDDEN, RATE_LIMIT_EXCEEDED; APP_NOT_FOUND for administrators; OVERLOADED if the disk is nearly full
   */
  requireAppAccess(request: AccessCheckInput, operation: Operation, appId: number): Promise<Caller>;
  /**
   * Checks a request for an operation that the permission table or the app's access rules can allow. The request may have no credential. If
   * `isTrusted` of the result is false, the operation must check the access rules.
   * @throws FORBIDDEN, APP_NOT_FOUND, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  admitAppRequest(request: AccessCheckInput, operation: Operation, appId: number): Promise<AdmittedRequest>;
  /**
   * Repeats the permission check of `requireAppAccess` for a caller who passed it before, without counting a request.
   * @throws FORBIDDEN
   */
  recheck(caller: Caller, operation: Operation, appId: number): void;
  /**
   * Repeats the permission check of `admitAppRequest` for a caller who passed it before, without counting a request.
   * @throws FORBIDDEN
   */
  recheckAdmission(caller: Caller, operation: Operation, appId: number): void;
  /** Counts one message of `sender` in the app's rate limit for messages. @throws RATE_LIMIT_EXCEEDED */
  countMessages(appId: number, sender: Pick<Caller, "kind">): Promise<void>;
  /**
   * Counts a request to an HTTP trigger in the app's rate limit. Call this method after the credential of the request was checked.
   * @throws RATE_LIMIT_EXCEEDED, OVERLOADED if the disk has no space for runs
   */
  countTriggerRequest(request: AccessCheckInput, appId: number): Promise<void>;
  /**
   * Counts a webhook request of a Git server in the app's rate limit. Call this method after the signature of the request was checked.
   * @throws RATE_LIMIT_EXCEEDED, OVERLOADED if the disk is nearly full
   */
  countGitWebhook(request: AccessCheckInput, appId: number): Promise<void>;
  /**
   * Counts a tool call of an AI agent in the app's rate limit. The operations that the tool performs count as further requests.
   * @throws ActionError RATE_LIMIT_EXCEEDED
   */
  countToolCall(request: AccessCheckInput, appId: number): Promise<void>;
  /** Checks access to an operation that belongs to no app, such as reading one's own account. @throws UNAUTHORIZED, FORBIDDEN */
  requireServiceAccess(request: AccessCheckInput, operation: Operation): Caller;
  /**
   * Checks access to an operation on an organization. If `organizationId` is null, the method selects the organization with the lowest ID
   * in which a role of the caller allows the operation. For an administrator without a role, it selects the lowest ID of all organizations.
   * @throws ActionError UNAUTHORIZED, FORBIDDEN, NOT_FOUND (only for administrators)
   */
  requireOrganizationAccess(
    request: AccessCheckInput,
    operation: Operation,
    organizationId: number | null,
  ): Promise<{ caller: Caller; organizationId: number }>;
}

const EXISTING_APP_CACHE_MS = 5_000;
const EXISTING_APP_CACHE_MAX_ENTRIES = 10_000;

const FIND_ORGANIZATION = "SELECT id FROM organization WHERE $1::bigint IS NULL OR id = $1 ORDER BY id LIMIT 1";

/**
 * Rejects an operation that adds data while the disk is nearly full. An operation that adds only runs is rejected only at the level
 * `spent`.
 * @throws OVERLOADED
 */
function refuseIfDiskIsFull(operation: Operation, level: DiskSpaceLevel): void {
  const addedResource = ADDED_RESOURCE_BY_OPERATION[operation];
  if (addedResource === "nothing" || (addedResource === "runs" && level !== "spent")) return;
  const retryAfter = LOW_DISK_RETRY_SECONDS;
  throw new ActionError("OVERLOADED", `the service's disk is nearly full; try again in ${retryAfter} s`, {
    retryAfter,
  });
}

export function createAccessChecks(options: {
  db: Db;
  rateWindow: RateWindow;
  limits: Config["rateLimits"];
  diskSpace: DiskSpaceMonitor;
}): AccessChecks {
  const { db, rateWindow, limits, diskSpace } = options;
  const existingApps = createBoundedCache<number, true>(EXISTING_APP_CACHE_MAX_ENTRIES, { ttl: EXISTING_APP_CACHE_MS });

  /**
   * Counts a request in the app's rate limit `name`. Visitors can use the whole limit, but they take away at most the share
   * VISITORS_RATE_LIMIT_SHARE of it from other callers: requests of visitors above this share do not count in the limit of others.
   * @throws RATE_LIMIT_EXCEEDED
   */
  async function countInBuckets(
    request: AccessCheckInput,
    appId: number,
    { name, limit, windowMs, isVisitor }: { name: string; limit: number; windowMs: number; isVisitor: boolean },
  ): Promise<void> {
    const visitorBucketName = `${name} of visitors`;
    let windowState = await rateWindow.admitCall(appId, name, { limit, windowMs });
    if (isVisitor && windowState.accepted) await rateWindow.admitCall(appId, visitorBucketName, { limit, windowMs });
    if (!isVisitor && !windowState.accepted) {
      const visitorShare = Math.max(1, Math.floor(limit * VISITORS_RATE_LIMIT_SHARE));
      const visitorExcess = (await rateWindow.count(appId, visitorBucketName, windowMs)) - visitorShare;
      if (visitorExcess > 0)
        windowState = await rateWindow.admitCall(appId, name, { limit: limit + visitorExcess, windowMs });
    }
    // One GraphQL request can count several times, in different rate limits. The response reports the smallest remaining quota.
    const remaining = Math.min(limit, windowState.remaining);
    if (remaining <= (request.quota?.remaining ?? limit)) request.quota = { ...windowState, remaining, limit };
    if (windowState.accepted) return;
    const retryAfter = Math.max(1, Math.ceil((windowState.nextAcceptedAt.getTime() - Date.now()) / 1000));
    throw createRateLimitError(
      `too many requests of the kind "${name}" (limit of this app: ${limit} in ${windowMs / 1000} seconds); try again in ${retryAfter} s`,
      retryAfter,
      windowState.nextAcceptedAt,
    );
  }

  async function countRequest(
    request: AccessCheckInput,
    caller: Caller,
    rateClass: RateLimitClass,
    appId: number,
  ): Promise<void> {
    const limit = limits[rateClass];
    if (limit === 0) return;
    const isVisitor = rateClass === "run" && isPageCaller(caller) && caller.personId === null;
    await countInBuckets(request, appId, {
      name: rateClass,
      limit,
      windowMs: getRateLimitWindowMs(rateClass),
      isVisitor,
    });
  }

  async function countMessages(appId: number, sender: Pick<Caller, "kind">): Promise<void> {
    const limit = limits.communicate;
    if (limit === 0) return;
    const windowMs = getRateLimitWindowMs("communicate");
    await countInBuckets({ caller: null }, appId, {
      name: "communicate",
      limit,
      windowMs,
      isVisitor: isPageCaller(sender),
    });
  }

  async function appExists(appId: number): Promise<boolean> {
    if (existingApps.has(appId)) return true;
    const exists = appId > 0 && (await rows(db, "SELECT 1 FROM app WHERE id = $1", [appId])).length > 0;
    if (exists) existingApps.set(appId, true);
    return exists;
  }

  const isPageCallerOfApp = ({ kind, appId: callerAppId }: Caller, appId: number) =>
    (kind === "live" || kind === "viewer") && callerAppId === appId;

  return {
    appExists,

    async admitAppRequest(request, operation, appId) {
      const { caller, address } = request;
      if (caller && mayPerformOnApp(caller, operation, appId)) {
        const admittedCaller = await this.requireAppAccess(request, operation, appId);
        const { unknownField } = request;
        return {
          ...{ caller: admittedCaller, isTrusted: true },
          ...(address !== undefined && { address }),
          ...(unknownField && { unknownField }),
        };
      }
      if (caller && !isPageCallerOfApp(caller, appId)) throw new ActionError("FORBIDDEN");
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull(operation, diskSpace.level());
      const { deferredError, unknownField } = request;
      return {
        ...{ caller, isTrusted: false },
        ...(address !== undefined && { address }),
        ...(deferredError && { deferredError }),
        ...(unknownField && { unknownField }),
      };
    },

    async requireAppAccess(request, operation, appId) {
      const { caller } = request;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      if (!mayPerformOnApp(caller, operation, appId)) throw new ActionError("FORBIDDEN");
      // An administrator can send the ID of any app, so the app may not exist. Other credentials have rights only on existing apps.
      if (caller.kind === "admin" && !(await appExists(appId))) throw new ActionError("APP_NOT_FOUND");
      const rateClass = getRateLimitClass(operation);
      if (rateClass) await countRequest(request, caller, rateClass, appId);
      throwDeferredError(request);
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull(operation, diskSpace.level());
      return addRequestToCaller(caller, request);
    },

    recheck(caller, operation, appId) {
      if (!mayPerformOnApp(caller, operation, appId)) throw new ActionError("FORBIDDEN");
    },

    recheckAdmission(caller, operation, appId) {
      if (!mayPerformOnApp(caller, operation, appId) && !isPageCallerOfApp(caller, appId))
        throw new ActionError("FORBIDDEN");
    },

    countMessages,

    async countTriggerRequest(request, appId) {
      const limit = limits.http;
      if (limit > 0) {
        await countInBuckets(request, appId, { name: "http", limit, windowMs: RATE_WINDOW_MS, isVisitor: false });
      }
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull("runAction", diskSpace.level());
    },

    async countGitWebhook(request, appId) {
      const limit = limits.publish;
      if (limit > 0) {
        const windowMs = getRateLimitWindowMs("publish");
        await countInBuckets(request, appId, { name: "git webhook", limit, windowMs, isVisitor: false });
      }
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull("pullGit", diskSpace.level());
    },

    async countToolCall(request, appId) {
      const limit = limits.mcp;
      if (limit === 0) return;
      await countInBuckets(request, appId, {
        name: "mcp",
        limit,
        windowMs: getRateLimitWindowMs("manage"),
        isVisitor: false,
      });
    },

    requireServiceAccess(request, operation) {
      const { caller } = request;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      if (!mayPerformOnService(caller, operation)) throw new ActionError("FORBIDDEN");
      throwDeferredError(request);
      return addRequestToCaller(caller, request);
    },

    async requireOrganizationAccess(request, operation, organizationId) {
      const { caller } = request;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      const organizationIds = [...caller.organizations.keys()].filter((id) =>
        mayPerformOnOrganization(caller, operation, id),
      );
      const id = organizationId ?? (organizationIds.length > 0 ? Math.min(...organizationIds) : null);
      if (caller.kind === "admin") {
        const [organization] = await rows<{ id: number }>(db, FIND_ORGANIZATION, [id]);
        if (!organization) throw new ActionError("NOT_FOUND", "there is no organization with this ID");
        throwDeferredError(request);
        return { caller: addRequestToCaller(caller, request), organizationId: organization.id };
      }
      if (id === null || !mayPerformOnOrganization(caller, operation, id)) throw new ActionError("FORBIDDEN");
      throwDeferredError(request);
      return { caller: addRequestToCaller(caller, request), organizationId: id };
    },
  };
}
