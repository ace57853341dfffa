/** Creates the account modules, and administrators with an account and a session, directly in the database of a test's service. */
import { pino } from "pino";
import { createDatabaseNotifications } from "../../src/engine/notifications.js";
import { CREDENTIAL_CHANNEL, Credentials } from "../../src/operations/access/credentials.js";
import { People } from "../../src/operations/access/people.js";
import { type AccountModules, createAccountModules } from "../../src/operations/accounts/people-accounts.js";
import type { TestService } from "./service.js";

export const PASSPHRASE = "seven lamps of the harbour";

export function createAccounts({
  db,
  databaseUrl,
  url,
}: Pick<TestService, "db" | "databaseUrl" | "url">): AccountModules {
  const log = pino({ level: "silent" });
  const notifications = createDatabaseNotifications({ url: databaseUrl, channels: [CREDENTIAL_CHANNEL], log });
  const credentials = new Credentials({ db, notifications });
  return createAccountModules({ db, credentials, people: new People({ db }), baseUrl: url });
}

let made = 0;

/** Creates an administrator with an account. Returns the person, and the token of a session. */
export async function createSignedInPerson(service: Pick<TestService, "db" | "databaseUrl" | "url">) {
  const { accounts } = createAccounts(service);
  const { token } = await accounts.createSetupLink();
  made += 1;
  const email = `account${made}@example.com`;
  const body = { token, email, firstName: "Ada", lastName: "Lovelace", passphrase: PASSPHRASE };
  const { user, session } = await accounts.setup({ caller: null }, body);
  return { user, email, token: session.token };
}
