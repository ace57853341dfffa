/**
 * Checks each operation before it runs: the caller's right, the existence of the app, and the rate limit.
 * rules/access.ts has the permission table.
 */
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import type { Config } from "../../config.js";
import { rows } from "../../data/database.js";
import type { DiskSpace, DiskSpaceLevel } from "../../engine/disk-space.js";
import type { RateAnswer, RateWindow } from "../../engine/rate-window.js";
import { ActionError } from "../../errors.js";
import { LOW_DISK_RETRY_SECONDS, RATE_WINDOW_MS, VISITORS_SHARE } from "../../limits.js";
import {
  type Caller,
  isVisitor,
  mayEnter,
  mayEnterOrganization,
  mayEnterService,
  type Operation,
  type RateClass,
  RESOURCE_ADDED_BY,
  rateClassOf,
  rateWindowOf,
} from "../../rules/access.js";

/** Parts of a request that the access check reads, and the quota that it sets for the headers of the response. */
export interface Visitor {
  caller: Caller | null;
  /** Network address of the request. */
  address?: string;
  quota?: RateAnswer & { limit: number };
  /**
   * Fault of the request, which is reported only after the caller's right has been checked, so that callers without the
   * right do not see it.
   */
  deferred?: ActionError;
  /** An unknown field of the body, which is reported after all other faults. */
  unknownField?: ActionError;
}

/** Throws the fault of the request that was deferred until access was checked. Does nothing if there is none. */
export function throwDeferred({ deferred }: Pick<Visitor, "deferred">): void {
  if (deferred) throw deferred;
}

/** A request for an operation that the app's access rules may allow. */
export interface AdmittedRequest {
  /** Caller of the request; null for anonymous callers. */
  caller: Caller | null;
  /** True if the access table allows the operation; otherwise the access rules decide. */
  isTrusted: boolean;
  /** The network address of the request. */
  address?: string;
  /** A fault of the request that the operation reports after the access rules have granted the right. */
  deferred?: ActionError;
  /** An unknown field of the body, which the operation reports after all other faults. */
  unknownField?: ActionError;
}

/** Returns the caller with the parts of the request that operations need. */
const callerOf = (caller: Caller, { address, unknownField }: Visitor): Caller => ({
  ...caller,
  ...(address !== undefined && { address }),
  ...(unknownField && { unknownField }),
});

export interface AccessGate {
  /** True if the app exists; existing apps are cached. */
  appExists(appId: number): Promise<boolean>;
  /**
   * Admits the visitor to `operation` on the app.
   * @throws UNAUTHORIZED, FORBIDDEN, APP_NOT_FOUND (only for administrators), RATE_LIMIT_EXCEEDED, OVERLOADED on a full
   *   disk
   */
  enter(visitor: Visitor, operation: Operation, appId: number): Promise<Caller>;
  /**
   * Admits callers to an operation that access rules may grant to visitors, with or without a credential. The operation
   * then checks the rules.
   * @throws FORBIDDEN, APP_NOT_FOUND, OVERLOADED
   */
  admit(visitor: Visitor, operation: Operation, appId: number): Promise<AdmittedRequest>;
  /** Repeats the permission check of `enter` for an admitted caller. Counts no request. @throws FORBIDDEN */
  recheck(caller: Caller, operation: Operation, appId: number): void;
  /** Repeats the permission check of `admit` for an admitted caller. Counts no request. @throws FORBIDDEN */
  readmit(caller: Caller, operation: Operation, appId: number): void;
  /** Counts one message of an admitted request in the app's rate limit for messages. @throws RATE_LIMIT_EXCEEDED */
  countMessages(appId: number, sender: Pick<Caller, "kind">): Promise<void>;
  /**
   * Counts a request to an HTTP trigger after its credential was checked.
   * @throws RATE_LIMIT_EXCEEDED, OVERLOADED on a full disk
   */
  enterTrigger(visitor: Visitor, appId: number): Promise<void>;
  /**
   * Counts a webhook of a git server after its signature was checked.
   * @throws RATE_LIMIT_EXCEEDED, OVERLOADED on a full disk
   */
  enterGitWebhook(visitor: Visitor, appId: number): Promise<void>;
  /**
   * Counts a tool call of an agent, in addition to the requests of the operations that the tool uses.
   * @throws ActionError RATE_LIMIT_EXCEEDED
   */
  countToolCall(visitor: Visitor, appId: number): Promise<void>;
  /** Checks access to an operation that belongs to no app. A person needs no role for it. */
  enterService(visitor: Visitor, operation: Operation): Caller;
  /**
   * Admits the visitor to an operation of one organization. Null stands for the caller's first organization in which
   * the operation is allowed.
   * @throws ActionError UNAUTHORIZED, FORBIDDEN, NOT_FOUND (only for administrators)
   */
  enterOrganization(
    visitor: Visitor,
    operation: Operation,
    organizationId: number | null,
  ): Promise<{ caller: Caller; organizationId: number }>;
}

const EXISTING_MS = 5_000;
const EXISTING_MAX = 10_000;

const FIND_ORGANIZATION = "SELECT id FROM organization WHERE $1::bigint IS NULL OR id = $1 ORDER BY id LIMIT 1";

/** @throws OVERLOADED */
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
  /**
   * Apps that existed when they were last looked up. An entry stays correct, because the service never deletes an app.
   */
  const existingApps = new LRUCache<number, true>({ max: EXISTING_MAX, ttl: EXISTING_MS });

  /**
   * Counts one request in the app's rate window. Visitors can use the whole window, but what they use above their share
   * is added to the limit of the app's own credentials, so that visitors cannot lock out editors and back ends.
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
    // A GraphQL document with several limited fields reports the smallest remaining quota.
    const remaining = Math.min(limit, windowState.remaining);
    if (remaining <= (visitor.quota?.remaining ?? limit)) visitor.quota = { ...windowState, remaining, limit };
    if (windowState.accepted) return;
    const retryAfter = Math.max(1, Math.ceil((windowState.freesAt.getTime() - Date.now()) / 1000));
    throw new ActionError(
      "RATE_LIMIT_EXCEEDED",
      `too many requests of the kind "${name}" (limit of this app: ${limit} in ${windowMs / 1000} seconds); try again in ${retryAfter} s`,
      { retryAfter, nextValidRequestDate: windowState.freesAt.toISOString() },
    );
  }

  async function countRequest(visitor: Visitor, caller: Caller, rateClass: RateClass, appId: number): Promise<void> {
    const limit = limits[rateClass];
    if (limit === 0) return;
    const isAnonymous = rateClass === "run" && isVisitor(caller) && caller.personId === null;
    await countInBuckets(visitor, appId, {
      name: rateClass,
      limit,
      windowMs: rateWindowOf(rateClass),
      isVisitor: isAnonymous,
    });
  }

  async function countMessages(appId: number, sender: Pick<Caller, "kind">): Promise<void> {
    const limit = limits.communicate;
    if (limit === 0) return;
    const windowMs = rateWindowOf("communicate");
    await countInBuckets({ caller: null }, appId, {
      name: "communicate",
      limit,
      windowMs,
      isVisitor: isVisitor(sender),
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
      if (caller && mayEnter(caller, operation, appId)) {
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
      if (!mayEnter(caller, operation, appId)) throw new ActionError("FORBIDDEN");
      // Other credentials only have rights on existing apps. An administrator can pass any app ID.
      if (caller.kind === "admin" && !(await appExists(appId))) throw new ActionError("APP_NOT_FOUND");
      const rateClass = rateClassOf(operation);
      if (rateClass) await countRequest(visitor, caller, rateClass, appId);
      throwDeferred(visitor);
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull(operation, diskSpace.level());
      return callerOf(caller, visitor);
    },

    recheck(caller, operation, appId) {
      if (!mayEnter(caller, operation, appId)) throw new ActionError("FORBIDDEN");
    },

    readmit(caller, operation, appId) {
      if (!mayEnter(caller, operation, appId) && !isVisitorOf(caller, appId)) throw new ActionError("FORBIDDEN");
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
        const windowMs = rateWindowOf("publish");
        await countInBuckets(visitor, appId, { name: "git webhook", limit, windowMs, isVisitor: false });
      }
      if (diskSpace.level() !== "enough") refuseIfDiskIsFull("pullGit", diskSpace.level());
    },

    async countToolCall(visitor, appId) {
      const limit = limits.mcp;
      if (limit === 0) return;
      await countInBuckets(visitor, appId, { name: "mcp", limit, windowMs: rateWindowOf("manage"), isVisitor: false });
    },

    enterService(visitor, operation) {
      const { caller } = visitor;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      if (!mayEnterService(caller, operation)) throw new ActionError("FORBIDDEN");
      throwDeferred(visitor);
      return callerOf(caller, visitor);
    },

    async enterOrganization(visitor, operation, organizationId) {
      const { caller } = visitor;
      if (!caller) throw new ActionError("UNAUTHORIZED");
      const organizationIds = [...caller.organizations.keys()].filter((id) =>
        mayEnterOrganization(caller, operation, id),
      );
      const id = organizationId ?? (organizationIds.length > 0 ? Math.min(...organizationIds) : null);
      if (caller.kind === "admin") {
        const [organization] = await rows<{ id: number }>(db, FIND_ORGANIZATION, [id]);
        if (!organization) throw new ActionError("NOT_FOUND", "there is no organization with this ID");
        throwDeferred(visitor);
        return { caller: callerOf(caller, visitor), organizationId: organization.id };
      }
      if (id === null || !mayEnterOrganization(caller, operation, id)) throw new ActionError("FORBIDDEN");
      throwDeferred(visitor);
      return { caller: callerOf(caller, visitor), organizationId: id };
    },
  };
}
