/** Ties together what clients in browsers ask for: their actions, the changes of these, reports of their runs, sessions. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Notifications } from "../engine/notifications.js";
import { createClientActions } from "./client-actions.js";
import { createClientFeed } from "./client-feed.js";
import { createClientRuns } from "./client-runs.js";
import type { Credentials } from "./credentials.js";
import type { Ledger } from "./ledger.js";
import { createPageSessions } from "./page-sessions.js";

export type Clients = ReturnType<typeof createClients>;

export function createClients(options: {
  db: DataSource;
  credentials: Credentials;
  notifications: Notifications;
  ledger: Ledger;
  /** The fence of this process. */
  holder: string;
  /** Milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
  log: Logger;
}) {
  const { db, credentials, notifications, ledger, holder, timeoutMs, log } = options;
  const clientActions = createClientActions(db);
  return {
    clientActions,
    clientFeed: createClientFeed({ clientActions, notifications, log }),
    sessions: createPageSessions({ db, credentials }),
    clientRuns: createClientRuns({ db, ledger, holder, timeoutMs }),
  };
}
