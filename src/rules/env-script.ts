/** Builds the script that sets `window.ENV` in an app's page (specification, App settings, rule 2). */
import type { Copy } from "../data/action-types.js";
import type { Person } from "../data/person.js";
import type { SettingsView } from "./setting-tiers.js";

export interface SignedInEntry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown>;
  /** Times (ISO 8601) at which the user proved an address with a code in this session; absent if there are none. */
  verified?: { email?: string; sms?: string };
}

/**
 * Result of `Svc.Session.get()` in a page or a server run (specification, Authentication 3). It describes the user and
 * contains no credential.
 */
export interface AppSession {
  appId: number;
  /** Person; null for an anonymous visitor, or for a run without a user, such as a scheduled one. */
  user: Person | null;
  /** Entry of the app user who is signed in to the page, without hashed columns; absent if no app user is signed in. */
  entries?: { dataSource: SignedInEntry };
  /** Set if a user has entered the right password, but still has to enter the code of the second factor. */
  awaits?: "secondFactor";
  environment: Copy;
}

/** Reads the session of a page or run. The credential determines which app user is signed in to the page. */
export type ReadSession = (user: {
  appId: number;
  personId: number | null;
  credentialId: number | null;
  copy: Copy;
}) => Promise<AppSession>;

/** `window.ENV` of a page that has no credential. */
export interface PublicEnv {
  appId: number;
  /** URL of the service's API, without a trailing slash. */
  apiUrl: string;
  /** `viewer`: the page shows drafts to an editor. `live`: it shows live versions to visitors. */
  environment: "viewer" | "live";
  /** Public settings only. */
  appSettings: SettingsView;
  /** Time limit of a client action in milliseconds. */
  clientTimeoutMs: number;
}

/** `window.ENV` of a page that has a credential. */
export interface RuntimeEnv extends PublicEnv {
  session: AppSession;
  /** Token of a page that has no cookie. The client library removes the token from `window.ENV` when it loads. */
  token?: string;
}

/** Characters that could end a script element, start a comment in it, or (in older JavaScript) end a string. */
const UNSAFE_CHARACTER = /[<>\u2028\u2029]/g;

/** Returns the value as a JavaScript literal that is safe inside a script element. */
export function scriptLiteral(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSAFE_CHARACTER,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Builds the script. The values are passed as a string to JSON.parse, because in an object literal `"__proto__"` would
 * set the prototype instead of a property.
 */
export function envScript(env: PublicEnv): string {
  return `window.ENV = JSON.parse(${scriptLiteral(JSON.stringify(env))});\n`;
}
