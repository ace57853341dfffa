/** Creates and connects all modules for data sources. Background work begins only when `start` is called. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import type { Config } from "../../config.js";
import type { KeyRing } from "../../engine/key-ring.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import type { Caller } from "../../rules/access.js";
import type { ReadSession } from "../../rules/env-script.js";
import type { LogEvents } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { createAccessTrials } from "./access-trials.js";
import { createAppUsers } from "./app-users.js";
import { createEntryChangeCleanup } from "./change-upkeep.js";
import { createDataSourceRows } from "./data-source-rows.js";
import { createDataSources } from "./data-sources.js";
import { createEntries } from "./entries.js";
import { createEntryChanges } from "./entry-changes.js";
import { createEntryCommits } from "./entry-commits.js";
import { createEntryExport } from "./entry-export.js";
import { createEntryFeed } from "./entry-feed.js";
import { createEntryImports } from "./entry-imports.js";
import { createEntryIndexes } from "./entry-indexes.js";
import { createEntryPositions } from "./entry-positions.js";
import { createEntryReader } from "./entry-reads.js";
import { createEntryRights } from "./entry-rights.js";
import { createEntrySearches } from "./entry-searches.js";
import { createEntryVersions } from "./entry-versions.js";
import { createEntryWrites } from "./entry-writes.js";
import { createHookMessageBuilder, type HookMessageStore } from "./hook-messages.js";
import { createReadPool } from "./read-pool.js";
import { createRecentQueries } from "./recent-queries.js";
import { createSessions } from "./sessions.js";
import { createAppUserSignInAttempts } from "./sign-in-attempts.js";
import { createSourceDefinitions } from "./source-definitions.js";

/** Maximum time in milliseconds that a stopping process waits for an index build. */
const INDEX_STOP_MS = 5_000;

export type DataSourceModules = ReturnType<typeof createDataSourceModules>;

export function createDataSourceModules(options: {
  db: Database;
  databaseUrl: string;
  notifications: DatabaseNotifications;
  logEvents: LogEvents;
  receivedDataLimiter: ReceivedDataLimiter;
  /**
   * `dataSourceQuotaMb` is the maximum size of one app's entries in MB; the same limit applies to its snapshots. 0
   * means no limit.
   */
  config: Pick<Config, "dataSourceQuotaMb">;
  /** Returns the session of a page or a run, without the app user who is signed in. */
  readSession: ReadSession;
  /** Keys with which positions of subscriptions are encrypted. */
  ring: KeyRing;
  /** Returns true if the app requires a second factor for each sign-in of its users. */
  needsSecondFactor: (appId: number) => Promise<boolean>;
  /** Called after a user has signed in to a page or signed out of it. */
  userChanged: (caller: Caller, appId: number) => Promise<void>;
  /** Functions with which hooks store messages to be sent. */
  outlet: HookMessageStore;
  log: Logger;
}) {
  const {
    db,
    databaseUrl,
    log,
    notifications,
    logEvents,
    receivedDataLimiter,
    readSession,
    needsSecondFactor,
    userChanged,
  } = options;
  const quotaBytes = options.config.dataSourceQuotaMb * 2 ** 20;
  const sources = createDataSourceRows({ db, notifications });
  const attempts = createAppUserSignInAttempts({ db });
  const appUsers = createAppUsers({ db, attempts, needsSecondFactor });
  const pool = createReadPool(databaseUrl);
  const entryReader = createEntryReader(pool);
  const rights = createEntryRights({ appUsers });
  const messenger = createHookMessageBuilder({ outlet: options.outlet, receivedDataLimiter });
  const changes = createEntryChanges({ db, logEvents, sources, messenger, quotaBytes });
  const versions = createEntryVersions({ db, quotaBytes });
  const writes = createEntryWrites({ changes, receivedDataLimiter });
  const commits = createEntryCommits({ changes, receivedDataLimiter, versions });
  const imports = createEntryImports({ changes, receivedDataLimiter, versions });
  const indexes = createEntryIndexes({ url: databaseUrl, log });
  const definitions = createSourceDefinitions({ sources, indexes, log });
  const dataSources = createDataSources({ db, sources, definitions, receivedDataLimiter });
  const sessions = createSessions({ db, sources, appUsers, logEvents, receivedDataLimiter, readSession, userChanged });
  const recentQueries = createRecentQueries();
  const searchParts = { sources, entryReader, changes, commits, versions, attempts, recentQueries };
  const searches = createEntrySearches({ read: pool.read, ...searchParts });
  const positions = createEntryPositions({ ring: options.ring });
  const feed = createEntryFeed({ db, read: pool.read, notifications, sources, rights, positions, log });
  const accessTrials = createAccessTrials({ db, sources, rights, searches });
  const changeUpkeep = createEntryChangeCleanup({ db });
  const entries = createEntries({
    db,
    sources,
    rights,
    changes,
    writes,
    commits,
    imports,
    versions,
    searches,
    recentQueries,
    exports: createEntryExport(pool),
    feed,
  });
  const stopStore = async () => {
    feed.stop();
    const stopLimit = new AbortController();
    // If the build of an index does not finish in time, an invalid index remains. `reconcile` builds it again at the
    // next start.
    await Promise.race([
      indexes.idle(),
      delay(INDEX_STOP_MS, undefined, { signal: stopLimit.signal }).catch(() => undefined),
    ]);
    stopLimit.abort();
    await pool.end();
  };
  /**
   * Creates missing indexes and drops indexes that no definition requests. Does not delay the start of the service,
   * because it runs in the background.
   */
  const startStore = () => {
    indexes
      .reconcile()
      .catch((err: unknown) =>
        log.warn({ err }, "the indexes on entries could not be compared with their definitions"),
      );
  };
  const { sessionOf } = sessions;
  return {
    dataSources,
    definitions,
    entries,
    trials: accessTrials,
    sessions,
    sources,
    appUsers,
    attempts,
    sessionOf,
    upkeep: changeUpkeep,
    start: startStore,
    stop: stopStore,
  };
}
