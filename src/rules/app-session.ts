/** Session of an app's page or of a server run, as `Svc.Session.get()` returns it (specification, Authentication 3). */
import type { DraftOrLive } from "../data/action-types.js";
import type { Person } from "../data/person.js";

export interface SignedInUserEntry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown>;
  /**
   * Times (ISO 8601) at which the user confirmed the e-mail address or phone number with a code in this session. A
   * field is absent if the user has not confirmed it.
   */
  verified?: { email?: string; sms?: string };
}

/**
 * Result of `Svc.Session.get()` in a page or a server run (specification, Authentication 3). It describes the user,
 * and contains no credential.
 */
export interface AppSession {
  appId: number;
  /**
   * Person of the organization who is signed in. null for an anonymous visitor, and for a run that no person started,
   * such as a scheduled run.
   */
  user: Person | null;
  /** Entry of the app user who is signed in on the page, without hashed columns; absent if no app user is signed in. */
  entries?: { dataSource: SignedInUserEntry };
  /** Present if the app user has entered the correct password, but not yet the code of the second factor. */
  awaits?: "secondFactor";
  environment: DraftOrLive;
}

/**
 * Returns the session for a page or a run. `credentialId` identifies the page's credential, on which an app user may be
 * signed in.
 */
export type ReadAppSession = (user: {
  appId: number;
  personId: number | null;
  credentialId: number | null;
  copy: DraftOrLive;
}) => Promise<AppSession>;
