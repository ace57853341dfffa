/** Creates a database with one app, and receives the notifications with which processes announce changed credentials. */
import pino from "pino";
import { createDatabaseNotifications, type DatabaseNotifications } from "../../src/engine/notifications.js";
import { CREDENTIAL_CHANNEL } from "../../src/operations/access/credentials.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

const CONNECTIONS = 4;
const INSERT_ONE_APP =
  "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')";

export interface CredentialsDatabase extends Pick<ConnectedDatabase, "db" | "stop"> {
  notifications: DatabaseNotifications;
}

export async function createCredentialsDatabase(): Promise<CredentialsDatabase> {
  const { db, url, stop } = await connectedDatabase(CONNECTIONS);
  const log = pino({ level: "silent" });
  const notifications = createDatabaseNotifications({ url, channels: [CREDENTIAL_CHANNEL], log });
  await notifications.start();
  await db.query(INSERT_ONE_APP);
  return {
    db,
    notifications,
    async stop() {
      await notifications.stop();
      await stop();
    },
  };
}
