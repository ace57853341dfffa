/**
 * Provides one service for each of SHARED_ROLES, for test files that need only default settings. Each file gets a separate app. If mocha
 * runs several processes, its main process starts the services. The workers read the services' URLs from an environment variable.
 */
import { pino } from "pino";
import { openDatabase } from "../../src/data/database.js";
import { createDatabaseNotifications } from "../../src/engine/notifications.js";
import { createAppWithTokens } from "../../src/operations/access/bootstrap.js";
import { CREDENTIAL_CHANNEL, Credentials } from "../../src/operations/access/credentials.js";
import { createCallers, startTestService, type TestService } from "./service.js";
import { stopAfterLastFile } from "./shared-processes.js";

const SHARED_ROLES = ["api", "api,runner"] as const;
type SharedRoles = (typeof SHARED_ROLES)[number];

type SharedAddress = Pick<TestService, "url" | "databaseUrl" | "dataDir">;

const ADDRESSES_VARIABLE = "TEST_SHARED_SERVICES";
const started = new Map<SharedRoles, Promise<TestService>>();
let uses = 0;

function start(roles: SharedRoles): Promise<TestService> {
  const running = started.get(roles);
  if (running) return running;
  const service = startTestService({ ROLES: roles });
  started.set(roles, service);
  stopAfterLastFile(async () => (await service).stop());
  return service;
}

export async function startSharedServices(): Promise<void> {
  const addresses: Partial<Record<SharedRoles, SharedAddress>> = {};
  for (const roles of SHARED_ROLES) {
    const { url, databaseUrl, dataDir } = await start(roles);
    addresses[roles] = { url, databaseUrl, dataDir };
  }
  process.env[ADDRESSES_VARIABLE] = JSON.stringify(addresses);
}

async function addressOf(roles: SharedRoles): Promise<SharedAddress> {
  const addresses = process.env[ADDRESSES_VARIABLE];
  if (addresses) return (JSON.parse(addresses) as Record<SharedRoles, SharedAddress>)[roles];
  return start(roles);
}

/** Creates an app for the calling test file in the shared service that has these roles. `stop` only closes `db`. */
export async function useSharedService(roles: SharedRoles): Promise<TestService> {
  const { url, databaseUrl, dataDir } = await addressOf(roles);
  const db = await openDatabase(databaseUrl, 2);
  const log = pino({ level: "silent" });
  const notifications = createDatabaseNotifications({ url: databaseUrl, channels: [CREDENTIAL_CHANNEL], log });
  const credentials = new Credentials({ db, notifications });
  uses += 1;
  const app = await db.transaction((manager) =>
    createAppWithTokens(manager, credentials, `use${process.pid}-${uses}.example.com`),
  );
  return { ...createCallers(url, app.tokens), ...app, databaseUrl, dataDir, db, stop: () => db.destroy() };
}
