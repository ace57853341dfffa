/** Makes the parts of people's accounts and ties them to each other. Read it to find what this folder offers. */
import type { DataSource } from "typeorm";
import type { Credentials } from "../access/credentials.js";
import type { People } from "../access/people.js";
import { createAccounts } from "./accounts.js";
import { createLinks } from "./links.js";
import { createPersonSessions } from "./person-sessions.js";
import { createSignInAttempts } from "./sign-in-attempts.js";
import { createWhoAmI } from "./who-am-i.js";

export type PeopleAccounts = ReturnType<typeof createPeopleAccounts>;

/** WebAuthn rejects IP addresses, and a browser opens no address that stands for all: links name this machine `localhost`. */
const linkBase = (baseUrl: string): string =>
  baseUrl.replace(/^(https?:\/\/)(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=[:/]|$)/, "$1localhost");

export function createPeopleAccounts(options: {
  db: DataSource;
  credentials: Credentials;
  people: People;
  /** PUBLIC_URL, or the address at which the service listens. */
  baseUrl: string;
}) {
  const { db, credentials, people, baseUrl } = options;
  const sessions = createPersonSessions({ db, credentials });
  const links = createLinks({ db, baseUrl: linkBase(baseUrl) });
  const attempts = createSignInAttempts({ db });
  const accounts = createAccounts({ db, people, sessions, links, attempts, sendReset: null });
  return { accounts, sessions, links, attempts, whoAmI: createWhoAmI({ db }) };
}
