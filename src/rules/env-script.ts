/** Builds the script that sets `window.ENV` in an app's page (specification, App settings, rule 2). */
import type { DraftOrLive } from "../data/action-types.js";
import type { Person } from "../data/person.js";
import type { SettingsByKey } from "./setting-tiers.js";

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

/** Value of `window.ENV` in a page without a credential. */
export interface PublicEnv {
  appId: number;
  /** URL of the service's API, without a trailing slash. */
  apiUrl: string;
  /** `viewer`: the page shows draft versions to an editor. `live`: the page shows live versions to visitors. */
  environment: "viewer" | "live";
  /** Public settings of the app. Protected and private settings are never part of a page. */
  appSettings: SettingsByKey;
  /** Time limit of a client action in milliseconds. */
  clientTimeoutMs: number;
}

/** Value of `window.ENV` in a page with a credential. */
export interface RuntimeEnv extends PublicEnv {
  session: AppSession;
  /**
   * Token of a page that has no cookie. The client library removes this token from `window.ENV` when the library loads.
   */
  token?: string;
}

/**
 * Matches characters that could end the script element, start an HTML comment in it, or (in older JavaScript) end a
 * string.
 */
const UNSAFE_IN_SCRIPT = /[<>\u2028\u2029]/g;

/** Returns the value as a JavaScript literal that is safe inside a script element. */
export function toScriptLiteral(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSAFE_IN_SCRIPT,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Builds the script that sets `window.ENV`. The script parses `env` from a JSON string, because in an object literal the key `"__proto__"`
 * would set the prototype instead of a property.
 */
export function buildWindowEnvScript(env: PublicEnv): string {
  return `window.ENV = JSON.parse(${toScriptLiteral(JSON.stringify(env))});\n`;
}
