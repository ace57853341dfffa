/**
 * Checks each operation before it runs: the caller's right, the existence of the app, and the rate limit. The
 * permission table is in rules/access.ts.
 */
import type { DataSource } from "typeorm";
import type { Config } from "../../config.js";
import { rows } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import type { DiskSpace, DiskSpaceLevel } from "../../engine/disk-space.js";
import type { RateDecision, RateWindow } from "../../engine/rate-window.js";
import { ActionError } from "../../errors.js";
import { LOW_DISK_RETRY_SECONDS, RATE_WINDOW_MS, VISITORS_SHARE } from "../../limits.js";
import {
  type Caller,
  getRateClass,
  getRateWindowMs,
  isPageCaller,
  mayPerformOnApp,
  mayPerformOnOrganization,
  mayPerformOnService,
  type Operation,
  type RateClass,
  RESOURCE_ADDED_BY,
} from "../../rules/access.js";

/**
 * Parts of a request that the access check reads. The check sets `quota`, the remaining requests, for the headers of
 * the response.
 */
export interface Visitor {
  caller: Caller | null;
  /** Network address of the request. */
  address?: string;
  quota?: RateDecision & { limit: number };
  /**
   * Error in the request. It is thrown only after the caller's right has been checked, so that callers without the
   * right do not see it.
   */
  deferred?: ActionError;
  /** Error for an unknown field of the body. It is thrown after all other checks of the request have passed. */
  unknownField?: ActionError;
}

/**
 * Throws the error of the request that was held back until the access check had passed. Does nothing if there is no
 * such error.
 */
export function throwDeferred({ deferred }: Pick<Visitor, "deferred">): void {
  if (deferred) throw deferred;
}

/** A request that passed `admit`: for an operation that the app's access rules may allow. */
export interface AdmittedRequest {
  /** Caller of the request; null for anonymous callers. */
  caller: Caller | null;
  /** True if the permission table allows the operation. If false, the app's access rules decide. */
  isTrusted: boolean;
  /** The network address of the request. */
  address?: string;
  /** Error in the request. The operation throws it after the access rules have granted the right. */
  deferred?: ActionError;
  /** Error for an unknown field of the body. The operation throws it after all its other checks have passed. */
  unknownField?: ActionError;
}

/**
 * Returns the caller with two parts of the request that operations need: the network address and the error for an
 * unknown field.
 */
const addRequestToCaller = (caller: Caller, { address, unknownField }: Visitor): Caller => ({
  ...caller,
  ...(address !== undefined && { address }),
  ...(unknownField && { unknownField }),
});

export interface AccessGate {
  /** Returns true if the app exists. The result for an existing app is cached. */
  appExists(appId: number): Promise<boolean>;
  /**
   * Checks that the caller may use `operation` on the app, and counts the request in the app's rate limit.
   * @throws UNAUTHORIZED, FORBIDDEN, APP_NOT_FOUND (only for administrators), RATE_LIMIT_EXCEEDED, OVERLOADED on a full
   *   disk
   */
  enter(visitor: Visitor, operation: Operation, appId: number): Promise<Caller>;
  /**
   * Admits a request, with or without a credential, to an operation that the app's access rules may allow. The
   * operation then checks these rules.
   * @throws FORBIDDEN, APP_NOT_FOUND, OVERLOADED
   */
  admit(visitor: Visitor, operation: Operation, appId: number): Promise<AdmittedRequest>;
  /**
   * Repeats the permission check of `enter` for a caller that passed it before. Does not count a request. @throws
   * FORBIDDEN
   */
  recheck(caller: Caller, operation: Operation, appId: number): void;
  /**
   * Repeats the permission check of `admit` for a caller that passed it before. Does not count a request. @throws
   * FORBIDDEN
   */
  readmit(caller: Caller, operation: Operation, appId: number): void;
  /** Counts one message of `sender` in the app's rate limit for messages. @throws RATE_LIMIT_EXCEEDED */
  countMessages(appId: number, sender: Pick<Caller, "kind">): Promise<void>;
  /**
   * Counts a request to an HTTP trigger. Call it after the credential of the request was checked.
   * @throws RATE_LIMIT_EXCEEDED, OVERLOADED on a full disk
   */
  enterTrigger(visitor: Visitor, appId: number): Promise<void>;
  /**
   * Counts a webhook request of a git server. Call it after the signature of the request was checked.
   * @throws RATE_LIMIT_EXCEEDED, OVERLOADED on a full disk
   */
  enterGitWebhook(visitor: Visitor, appId: number): Promise<void>;
  /**
   * Counts an agent's tool call in the app's rate limit. The operations that the tool uses are counted as well.
   * @throws ActionError RATE_LIMIT_EXCEEDED
   */
  countToolCall(visitor: Visitor, appId: number): Promise<void>;
  /**
   * Checks access to an operation that belongs to no app, such as reading one's own account. A person needs no role for
   * it.
   */
  enterService(visitor: Visitor, operation: Operation): Caller;
  /**
   * Checks access to an operation on an organization. If the organization's ID is null, selects the caller's first
   * organization in which the operation is allowed.
   * @throws ActionError UNAUTHORIZED, FORBIDDEN, NOT_FOUND (only for administrators)
   */
  enterOrganization(
    visitor: Visitor,
    operation: Operation,
    organizationId: number | null,
  ): Promise<{ caller: Caller; organizationId: number }>;
}

const EXISTING_APP_CACHE_MS = 5_000;
const EXISTING_APP_CACHE_MAX_ENTRIES = 10_000;

const FIND_ORGANIZATION = "SELECT id FROM organization WHERE $1::bigint IS NULL OR id = $1 ORDER BY id LIMIT 1";

/** Rejects operations that write data while the disk is nearly full. @throws OVERLOADED */
function refuseIfDiskIsFull(operation: Operation, level: DiskSpaceLevel): void {
  const addedResource = RESOURCE_ADDED_BY[operation];
  if (addedResource === "nothing" || (addedResource === "runs" && level !== "spent")) return;
  const retryAfter = LOW_DISK_RETRY_SECONDS;
  throw new ActionError("OVERLOADED", `the service's disk is nearly full; try again in ${retryAfter} s`, {
    retryAfter,
  });
}

export function createGate(options: {
  db: DataSource;
  window: RateWindow;
  limits: Config["rateLimits"];
  diskSpace: DiskSpace;
}): AccessGate {
  const { db, window, limits, diskSpace } = options;
  /** IDs of apps that are known to exist. An entry stays correct, because the service never deletes an app. */
  const existingApps = createBoundedCache<number, true>(EXISTING_APP_CACHE_MAX_ENTRIES, { ttl: EXISTING_APP_CACHE_MS });

  /**
   * Counts one request in the app's rate window. Visitors can use the whole window. Requests of visitors above their
   * share do not reduce the limit of the app's own credentials, so that visitors cannot lock out editors and back ends.
   */
  async function countInBuckets(
    visitor: Visitor,
    appId: number,
    { name, limit, windowMs, isVisitor }: { name: string; limit: number; windowMs: number; isVisitor: boolean },
  ): Promise<void> {
    const visitorsName = `${name} of visitors`;
    let windowState = await window.takeTokens(appId, name, { limit, windowMs });
    if (isVisitor && windowState.accepted) await window.takeTokens(appId, visitorsName, { limit, windowMs });
    if (!isVisitor && !windowState.accepted) {
      const visitorShare = Math.max(1, Math.floor(limit * VISITORS_SHARE));
      const visitorExcess = (await window.count(appId, visitorsName, windowMs)) - visitorShare;
      if (visitorExcess > 0)
        windowState = await window.takeTokens(appId, name, { limit: limit + visitorExcess, windowMs });
    }
    // A GraphQL document can use several rate-limited fields. The response then reports the smallest remaining quota.
    const remaining = Math.min(limit, windowState.remaining);
    if (remaining <= (visitor.quota?.remaining ?? limit)) visitor.quota = { ...windowState, remaining, limit };
    if (windowState.accepted) return;
    const retryAfter = Math.max(1, Math.ceil((windowState.nextAcceptedAt.getTime() - Date.now()) / 1000));
    throw new ActionError(
      "RATE_LIMIT_EXCEEDED",
      `too many requests of the kind "${name}" (limit of this app: ${limit} in ${windowMs / 1000} seconds); try again in ${retryAfter} s`,
      { retryAfter, nextValidRequestDate: windowState.nextAcceptedAt.toISOString() },
    );
  }

  async function countRequest(visitor: Visitor, caller: Caller, rateClass: RateClass, appId: number): Promise<void> {
    const limit = limits[rateClass];
    if (limit === 0) return;
    const isAnonymous = rateClass === "run" && isPageCaller(caller) && caller.personId === null;
    await countInBuckets(visitor, appId, {
      name: rateClass,
      limit,
      windowMs: getRateWindowMs(rateClass),
      isVisitor: isAnonymous,
    });
  }

  async function countMessages(appId: number, sender: Pick<Caller, "kind">): Promise<void> {
    const limit = limits.communicate;
    if (limit === 0) return;
    const windowMs = getRateWindowMs("communicate");
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

  const isVisitorOf = ({ kind, appId: visitorAppId }: Caller, appId: number) =>
    (kind === "live" || kind === "viewer") && visitorAppId === appId;

  return {
    appExists,

    async admit(visitor, operation, appId) {
      const { caller, address } = visitor;
      if (caller && mayPerformOnApp(caller, operation, appId)) {
        const enteredVisitor = await this.enter(visitor, operation, appId);
        const { unknownField } = visitor;
        return {
          ...{ caller: enteredVisitor, isTrusted: true },
          ...(address !== undefined && { address }),
          ...(unknownField && { unknownField }),
        };
      }
      if (caller && !isVisitorOf(caller, appId)) throw new ActionError("FORBIDDEN");
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull(operation, diskSpace.level());
      const { deferred, unknownField } = visitor;
      return {
        ...{ caller, isTrusted: false },
        ...(address !== undefined && { address }),
        ...(deferred && { deferred }),
        ...(unknownField && { unknownField }),
      };
    },

    async enter(visitor, operation, appId) {
      const { caller } = visitor;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      if (!mayPerformOnApp(caller, operation, appId)) throw new ActionError("FORBIDDEN");
      // An administrator can send the ID of any app, so the app may not exist. Other credentials have rights only on
      // existing apps.
      if (caller.kind === "admin" && !(await appExists(appId))) throw new ActionError("APP_NOT_FOUND");
      const rateClass = getRateClass(operation);
      if (rateClass) await countRequest(visitor, caller, rateClass, appId);
      throwDeferred(visitor);
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull(operation, diskSpace.level());
      return addRequestToCaller(caller, visitor);
    },

    recheck(caller, operation, appId) {
      if (!mayPerformOnApp(caller, operation, appId)) throw new ActionError("FORBIDDEN");
    },

    readmit(caller, operation, appId) {
      if (!mayPerformOnApp(caller, operation, appId) && !isVisitorOf(caller, appId)) throw new ActionError("FORBIDDEN");
    },

    countMessages,

    async enterTrigger(visitor, appId) {
      const limit = limits.http;
      if (limit > 0) {
        await countInBuckets(visitor, appId, { name: "http", limit, windowMs: RATE_WINDOW_MS, isVisitor: false });
      }
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull("runAction", diskSpace.level());
    },

    async enterGitWebhook(visitor, appId) {
      const limit = limits.publish;
      if (limit > 0) {
        const windowMs = getRateWindowMs("publish");
        await countInBuckets(visitor, appId, { name: "git webhook", limit, windowMs, isVisitor: false });
      }
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull("pullGit", diskSpace.level());
    },

    async countToolCall(visitor, appId) {
      const limit = limits.mcp;
      if (limit === 0) return;
      await countInBuckets(visitor, appId, {
        name: "mcp",
        limit,
        windowMs: getRateWindowMs("manage"),
        isVisitor: false,
      });
    },

    enterService(visitor, operation) {
      const { caller } = visitor;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      if (!mayPerformOnService(caller, operation)) throw new ActionError("FORBIDDEN");
      throwDeferred(visitor);
      return addRequestToCaller(caller, visitor);
    },

    async enterOrganization(visitor, operation, organizationId) {
      const { caller } = visitor;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      const organizationIds = [...caller.organizations.keys()].filter((id) =>
        mayPerformOnOrganization(caller, operation, id),
      );
      const id = organizationId ?? (organizationIds.length > 0 ? Math.min(...organizationIds) : null);
      if (caller.kind === "admin") {
        const [organization] = await rows<{ id: number }>(db, FIND_ORGANIZATION, [id]);
        if (!organization) throw new ActionError("NOT_FOUND", "there is no organization with this ID");
        throwDeferred(visitor);
        return { caller: addRequestToCaller(caller, visitor), organizationId: organization.id };
      }
      if (id === null || !mayPerformOnOrganization(caller, operation, id)) throw new ActionError("FORBIDDEN");
      throwDeferred(visitor);
      return { caller: addRequestToCaller(caller, visitor), organizationId: id };
    },
  };
}
