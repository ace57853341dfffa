/** Session of an app's page or of a server run, as `Svc.Session.get()` returns it (specification, Authentication 3). */
import type { DraftOrLive } from "../data/action-types.js";
import type { Person } from "../data/person.js";

export interface SignedInUserEntry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown>;
  /** Times (ISO 8601) at which the user confirmed an e-mail address or phone number with a code in this session. Otherwise absent. */
  verified?: { email?: string; sms?: string };
}

/** Result of `Svc.Session.get()`. It contains no credential. */
export interface AppSession {
  appId: number;
  /** Person of the organization who is signed in; null for an anonymous visitor, or if no person started the run. */
  user: Person | null;
  /** Entry of the app user who is signed in on the page, without hashed columns such as the password; absent if there is none. */
  entries?: { dataSource: SignedInUserEntry };
  /** Present if the app user has entered the correct password, but not yet the code that was sent to the phone. */
  awaits?: "secondFactor";
  environment: DraftOrLive;
}

/** Returns the session for a page or a run. `credentialId` is the page's credential, with which an app user may be signed in. */
export type ReadAppSession = (user: {
  appId: number;
  personId: number | null;
  credentialId: number | null;
  copy: DraftOrLive;
}) => Promise<AppSession>;
