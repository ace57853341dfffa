/** Makes the parts of data sources and ties them to each other. Starts nothing. */
import type { Logger } from "pino";
import type { DataSource as Database } from "typeorm";
import type { Notifications } from "../../engine/notifications.js";
import type { SessionOf } from "../../rules/env-script.js";
import type { Intake } from "../records/intake.js";
import type { LogEvents } from "../records/log-events.js";
import { createAppUsers } from "./app-users.js";
import { createDataSourceRows } from "./data-source-rows.js";
import { createDataSources, type Indexing } from "./data-sources.js";
import { createEntries } from "./entries.js";
import { createEntryChanges } from "./entry-changes.js";
import { createEntryCommits } from "./entry-commits.js";
import { createEntryImports } from "./entry-imports.js";
import { createEntryRights } from "./entry-rights.js";
import { createEntryVersions } from "./entry-versions.js";
import { createEntryWrites } from "./entry-writes.js";
import { createSessions } from "./sessions.js";

export type Store = ReturnType<typeof createStore>;

const NO_INDEXES: Indexing = { judge: () => undefined, change: async () => undefined, drop: async () => undefined };

/** @param options.quotaBytes what the entries of one app may take, and its snapshots once more; 0 is unlimited */
export function createStore(options: {
  db: Database;
  notifications: Notifications;
  logEvents: LogEvents;
  intake: Intake;
  quotaBytes: number;
  /** The person that a page or a run works for. */
  person: SessionOf;
  log: Logger;
}) {
  const { db, notifications, logEvents, intake, quotaBytes, person } = options;
  const sources = createDataSourceRows({ db, notifications });
  const appUsers = createAppUsers({ db });
  const rights = createEntryRights({ appUsers });
  const changes = createEntryChanges({ db, logEvents, sources, quotaBytes });
  const versions = createEntryVersions({ db, quotaBytes });
  const writes = createEntryWrites({ changes, intake });
  const commits = createEntryCommits({ changes, intake, versions });
  const imports = createEntryImports({ changes, intake, versions });
  const dataSources = createDataSources({ db, sources, intake, indexing: NO_INDEXES });
  const sessions = createSessions({ db, sources, appUsers, logEvents, intake, person });
  const entries = createEntries({ db, sources, rights, changes, writes, commits, imports, versions });
  return { dataSources, entries, sessions, appUsers, sessionOf: sessions.sessionOf };
}
