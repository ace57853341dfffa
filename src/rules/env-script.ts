/** The script that sets `window.ENV` in an app's page (specification, App settings, rule 2). Pure. */
import type { Copy } from "../data/action-types.js";
import type { Person } from "../data/person.js";
import type { SettingsView } from "./setting-tiers.js";

export interface SignedInEntry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown>;
  /** Addresses that a code has proven since the sign-in, each with the moment in ISO 8601; absent where none was. */
  verified?: { email?: string; sms?: string };
}

/** Who a page, or a server run, works for (specification, Authentication 3): what `Svc.Session.get()` gives. A description, no credential. */
export interface AppSession {
  appId: number;
  /** null: a visitor without a name, or a run without a user, such as a scheduled one. */
  user: Person | null;
  /** The entry as which the page's user signed in, without its hashed columns; absent if no user is signed in. */
  entries?: { dataSource: SignedInEntry };
  /** A user has entered a correct password, and is signed in after a code has proven the second factor. */
  awaits?: "secondFactor";
  environment: Copy;
}

/** Finds whom a page, or a run, of that copy works for; by the credential, the user who is signed in to the page. */
export type SessionOf = (whom: {
  appId: number;
  personId: number | null;
  credentialId: number | null;
  copy: Copy;
}) => Promise<AppSession>;

/** `window.ENV` of a page that has no credential. */
export interface PublicEnv {
  appId: number;
  /** Address of the API, without a closing slash. */
  apiUrl: string;
  /** `viewer`: the app viewer, drafts; `live`: the live app, live versions. */
  environment: "viewer" | "live";
  /** Public keys only. */
  appSettings: SettingsView;
  /** Milliseconds that a client action may take. */
  clientTimeoutMs: number;
}

/** `window.ENV` of a page that has a credential. */
export interface RuntimeEnv extends PublicEnv {
  session: AppSession;
  /** Only for a page without a cookie: the client library removes it when it loads. */
  token?: string;
}

/** What ends a script element, opens a comment in one, or once ended a line inside a string. */
const UNSAFE = /[<>\u2028\u2029]/g;

/** JSON that is a literal of JavaScript too, and may stand in a script element. */
export function scriptLiteral(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * The values stand in a string literal that JSON.parse reads: in an object literal `"__proto__"` would set a prototype, here it is
 * a property like any other.
 */
export function envScript(env: PublicEnv): string {
  return `window.ENV = JSON.parse(${scriptLiteral(JSON.stringify(env))});\n`;
}
