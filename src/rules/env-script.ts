/** Builds the script that sets `window.ENV` in an app's page (specification, App settings, rule 2). */
import type { Copy } from "../data/action-types.js";
import type { Person } from "../data/person.js";
import type { SettingsView } from "./setting-tiers.js";

export interface SignedInEntry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown>;
  /** Addresses proven by a code since the sign-in, each with the time in ISO 8601; absent if there are none. */
  verified?: { email?: string; sms?: string };
}

/**
 * Person of a page or a server run (specification, Authentication 3): the result of `Svc.Session.get()`. It describes the person, and is
 * not a credential.
 */
export interface AppSession {
  appId: number;
  /** Person; null for an anonymous visitor, or for a run without a user, such as a scheduled one. */
  user: Person | null;
  /** The entry of the page's signed-in user, without its hashed columns; absent if no user is signed in. */
  entries?: { dataSource: SignedInEntry };
  /** Set if a user has entered the right password, and is signed in once a code proves the second factor. */
  awaits?: "secondFactor";
  environment: Copy;
}

/** Returns the person of a page or run in this environment. The credential decides which app user is signed in to the page. */
export type SessionOf = (user: {
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
  /** Maximum milliseconds of a client action. */
  clientTimeoutMs: number;
}

/** `window.ENV` of a page that has a credential. */
export interface RuntimeEnv extends PublicEnv {
  session: AppSession;
  /** Token of a page without a cookie. The client library removes it from `window.ENV` when it loads. */
  token?: string;
}

/** Characters that could end a script element, open a comment in it, or (in older JavaScript) end a line inside a string. */
const UNSAFE_CHARACTER = /[<>\u2028\u2029]/g;

/** Returns JSON that is also a JavaScript literal, and safe inside a script element. */
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
