/**
 * Creates and connects the modules for clients in browsers: their actions, changes of these actions, reports of runs,
 * analytics events, sessions.
 */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import type { DiskSpaceMonitor } from "../../engine/disk-space.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { createRateLimitError } from "../../errors.js";
import { CLIENT_REPORTS_PER_CREDENTIAL_AND_MINUTE, RATE_WINDOW_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { getRateLimitKey } from "../../rules/address-block.js";
import type { AddAssetUrls } from "../../rules/packages.js";
import type { Credentials } from "../access/credentials.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { FindAppUser } from "../runs/run-access.js";
import type { RunRepository } from "../runs/run-repository.js";
import { Analytics } from "./analytics.js";
import { ClientActions } from "./client-actions.js";
import { createClientActionFeed } from "./client-feed.js";
import { ClientRuns } from "./client-runs.js";
import { PageSessions } from "./page-sessions.js";
import { VisitorSessions } from "./visitors.js";

/**
 * Returns a function that counts a request. It throws RATE_LIMIT_EXCEEDED if a credential has sent too many requests from one network
 * address, so that no visitor can fill an app's log.
 */
function createRequestCounter(): (caller: Caller) => void {
  const requestBucket = createTokenBucket({
    limit: CLIENT_REPORTS_PER_CREDENTIAL_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });
  return (caller) => {
    const retryAfter = requestBucket.takeTokens(getRateLimitKey(caller));
    if (retryAfter > 0)
      throw createRateLimitError(`too many requests from this client; try again in ${retryAfter} s`, retryAfter);
  };
}

export function createClientModules(options: {
  db: Db;
  credentials: Credentials;
  notifications: DatabaseNotifications;
  repository: RunRepository;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  diskSpace: DiskSpaceMonitor;
  addAssetUrls: AddAssetUrls;
  /** Returns the app user who is signed in to the caller's page. */
  findAppUser: FindAppUser;
  /** Time limit of a run in a browser, in milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
  /** True if an app's list of page origins may contain http origins of any host (ALLOW_PRIVATE_NETWORK). */
  allowHttp: boolean;
  log: Logger;
}) {
  const { db, credentials, notifications, repository, logEvents, receivedDataLimiter, diskSpace } = options;
  const { addAssetUrls, findAppUser, timeoutMs, allowHttp, log } = options;
  const clientActions = new ClientActions({ db, addAssetUrls, findAppUser });
  const countRequest = createRequestCounter();
  const sessions = new PageSessions({ db, credentials, logEvents, diskSpace });
  return {
    visitors: new VisitorSessions({
      db,
      startVisitorSession: (...visit) => sessions.startVisitorSession(...visit),
      countVisitorSession: (address) => sessions.countVisitorSession(address),
      allowHttp,
    }),
    clientActions,
    clientFeed: createClientActionFeed({ clientActions, notifications, log }),
    sessions,
    clientRuns: new ClientRuns({ db, repository, timeoutMs, receivedDataLimiter, clientActions, countRequest }),
    analytics: new Analytics({ logEvents, receivedDataLimiter, countRequest }),
  };
}
