/** Creates the modules for people's accounts: sign-in, sessions, passkeys, OpenID, one-time links. Read this file to find these modules. */

import type { OpenIdProvider } from "../../config/open-id.js";
import type { Db } from "../../data/database.js";
import type { Credentials } from "../access/credentials.js";
import type { People, User } from "../access/people.js";
import { createAccessLogLister } from "./access-events.js";
import { Accounts } from "./accounts.js";
import { createCallerAccessReader } from "./caller-access.js";
import { OpenIdIdentityStore } from "./identities.js";
import { OneTimeLinks } from "./links.js";
import { OpenId } from "./open-id.js";
import { Passkeys } from "./passkeys.js";
import { PersonSessions } from "./person-sessions.js";
import type { SendServiceMail } from "./service-mail.js";
import { PersonSignInAttempts } from "./sign-in-attempts.js";

export type AccountModules = ReturnType<typeof createAccountModules>;

/** Replaces a loopback or wildcard IP address in the URL by `localhost`, because WebAuthn accepts no IP addresses. */
const toLinkBaseUrl = (baseUrl: string): string =>
  baseUrl.replace(/^(https?:\/\/)(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=[:/]|$)/, "$1localhost");

const composeResetMail = (user: User, link: string): string => `Hello ${user.firstName},

someone asked for a new passphrase for your account. To choose one, open this link within an hour:

${link}

If it was not you, ignore this e-mail: your passphrase stays as it is.
`;

export function createAccountModules(options: {
  db: Db;
  credentials: Credentials;
  people: People;
  /** URL in the setting PUBLIC_URL. If this setting is missing, the URL at which the service listens. */
  baseUrl: string;
  /** Sends an e-mail; null if no mail server is configured. Without a mail server, administrators send reset links to people themselves. */
  mail?: SendServiceMail | null;
  providers?: readonly OpenIdProvider[];
}) {
  const { db, credentials, people, baseUrl, mail = null, providers = [] } = options;
  const sessions = new PersonSessions({ db, credentials });
  const links = new OneTimeLinks({ db, baseUrl: toLinkBaseUrl(baseUrl) });
  const attempts = new PersonSignInAttempts({ db });
  const sendResetLink =
    mail &&
    ((user: User, link: string) =>
      mail({ to: user.email, subject: "Your new passphrase", text: composeResetMail(user, link) }));
  const accounts = new Accounts({ db, people, sessions, links, attempts, sendResetLink });
  const identities = new OpenIdIdentityStore({ db, credentials });
  return {
    accounts,
    sessions,
    links,
    attempts,
    passkeys: new Passkeys({ db, accounts, sessions, attempts }),
    identities,
    openId: new OpenId({ db, providers, accounts, identities }),
    whoAmI: createCallerAccessReader({ db }),
    listAccess: createAccessLogLister({ db }),
    mail,
  };
}
