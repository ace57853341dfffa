/** Creates and connects all modules for data sources. `start` then begins to repair indexes in the background. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Config } from "../../config.js";
import type { Db } from "../../data/database.js";
import type { KeyRing } from "../../engine/key-ring.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import type { Caller } from "../../rules/access.js";
import type { ReadAppSession } from "../../rules/app-session.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { AccessRuleTester } from "./access-rule-tester.js";
import { AppUsers } from "./app-users.js";
import { DataSourceRows } from "./data-source-rows.js";
import { DataSourceSnapshots } from "./data-source-snapshots.js";
import { DataSources } from "./data-sources.js";
import { Entries } from "./entries.js";
import { EntryChangeCleanup } from "./entry-change-cleanup.js";
import { EntryChangeTransactions } from "./entry-changes.js";
import { EntryCommits } from "./entry-commits.js";
import { EntryExport } from "./entry-export.js";
import { EntryChangeFeed } from "./entry-feed.js";
import { EntryImports } from "./entry-imports.js";
import { EntryIndexes } from "./entry-indexes.js";
import { SubscriptionPositionCodec } from "./entry-positions.js";
import { EntryReader } from "./entry-reads.js";
import { EntryRightsResolver } from "./entry-rights.js";
import { EntrySearches } from "./entry-searches.js";
import { EntryWrites } from "./entry-writes.js";
import { HookMessageBuilder, type HookMessageStore } from "./hook-messages.js";
import { ReadPool } from "./read-pool.js";
import { RecentQueries } from "./recent-queries.js";
import { AppUserSessions } from "./sessions.js";
import { AppUserSignInAttempts } from "./sign-in-attempts.js";
import { DataSourceDefinitionStore } from "./source-definitions.js";

/** Maximum time in milliseconds that a stopping process waits for an index build. */
const INDEX_STOP_MS = 5_000;

export type DataSourceModules = ReturnType<typeof createDataSourceModules>;

export function createDataSourceModules(options: {
  db: Db;
  databaseUrl: string;
  notifications: DatabaseNotifications;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  /** `dataSourceQuotaMb` is the maximum size of one app's entries, and separately of its snapshots, in MB. 0 means no limit. */
  config: Pick<Config, "dataSourceQuotaMb">;
  /** Returns the session of a page or a run, without the app user who is signed in. */
  readSession: ReadAppSession;
  ring: KeyRing;
  needsSecondFactor: (appId: number) => Promise<boolean>;
  userChanged: (caller: Caller, appId: number) => Promise<void>;
  hookMessageStore: HookMessageStore;
  log: Logger;
}) {
  const { db, databaseUrl, log, notifications, logEvents, receivedDataLimiter } = options;
  const quotaBytes = options.config.dataSourceQuotaMb * 2 ** 20;
  const sources = new DataSourceRows({ db, notifications });
  const attempts = new AppUserSignInAttempts({ db });
  const pool = new ReadPool(databaseUrl);
  const appUsers = new AppUsers({ db, read: pool.read, attempts, needsSecondFactor: options.needsSecondFactor });
  const entryReader = new EntryReader(pool);
  const rights = new EntryRightsResolver({ appUsers });
  const messenger = new HookMessageBuilder({ hookMessageStore: options.hookMessageStore, receivedDataLimiter });
  const changes = new EntryChangeTransactions({ db, logEvents, sources, messenger, quotaBytes });
  const snapshots = new DataSourceSnapshots({ db, quotaBytes });
  const writes = new EntryWrites({ changes, receivedDataLimiter });
  const commits = new EntryCommits({ changes, receivedDataLimiter, snapshots });
  const imports = new EntryImports({ changes, receivedDataLimiter, snapshots });
  const indexes = new EntryIndexes({ url: databaseUrl, log });
  const definitions = new DataSourceDefinitionStore({ sources, indexes, quotaBytes, log });
  const dataSources = new DataSources({ db, sources, definitions, receivedDataLimiter });
  const sessions = new AppUserSessions({ ...options, sources, appUsers });
  const recentQueries = new RecentQueries();
  const searchOptions = { sources, entryReader, changes, commits, snapshots, attempts, recentQueries };
  const searches = new EntrySearches({ read: pool.read, ...searchOptions });
  const positions = new SubscriptionPositionCodec({ ring: options.ring });
  const feed = new EntryChangeFeed({ db, read: pool.read, notifications, sources, rights, positions, log });
  const accessRuleTester = new AccessRuleTester({ db, sources, rights, searches });
  const entryChangeCleanup = new EntryChangeCleanup({ db });
  const entries = new Entries({
    db,
    sources,
    rights,
    changes,
    writes,
    commits,
    imports,
    snapshots,
    searches,
    recentQueries,
    exports: new EntryExport(pool),
    feed,
  });
  /** Repairs indexes in the background, so that a long index build does not delay the start of the service. */
  const repairIndexes = () => {
    indexes
      .reconcile()
      .catch((err: unknown) =>
        log.warn({ err }, "the indexes on entries could not be compared with their definitions"),
      );
  };
  let stopListening = () => {};
  const startStore = () => {
    repairIndexes();
    // In an outage of the database, index changes of any process may have ended before they were complete.
    stopListening = notifications.onGap(repairIndexes);
  };
  const stopStore = async () => {
    feed.stop();
    stopListening();
    const stopTimeoutController = new AbortController();
    // If the build of an index does not finish in time, an invalid index remains. `reconcile` builds it again at the next start.
    await Promise.race([
      indexes.waitUntilIdle(),
      delay(INDEX_STOP_MS, undefined, { signal: stopTimeoutController.signal }).catch(() => undefined),
    ]);
    stopTimeoutController.abort();
    await pool.end();
  };
  return {
    dataSources,
    definitions,
    entries,
    accessRuleTester,
    sessions,
    sources,
    appUsers,
    attempts,
    read: pool.read,
    readAppSession: sessions.readAppSession,
    upkeep: entryChangeCleanup,
    start: startStore,
    stop: stopStore,
  };
}
