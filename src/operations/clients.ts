/** Ties together what clients in browsers ask for: their actions, the changes of these, and the reports of their runs. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Notifications } from "../engine/notifications.js";
import { createClientActions } from "./client-actions.js";
import { createClientFeed } from "./client-feed.js";
import { createClientRuns } from "./client-runs.js";
import type { Ledger } from "./ledger.js";

export type Clients = ReturnType<typeof createClients>;

export function createClients(options: {
  db: DataSource;
  notifications: Notifications;
  ledger: Ledger;
  /** The fence of this process. */
  holder: string;
  /** Milliseconds (specification, Limits: client action execution time). */
  timeoutMs: number;
  log: Logger;
}) {
  const { db, notifications, ledger, holder, timeoutMs, log } = options;
  const clientActions = createClientActions(db);
  return {
    clientActions,
    clientFeed: createClientFeed({ clientActions, notifications, log }),
    clientRuns: createClientRuns({ db, ledger, holder, timeoutMs }),
  };
}
