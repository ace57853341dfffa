/** Builds the script that sets `window.ENV` in an app's page (specification, App settings, rule 2). */
import type { AppSession } from "./app-session.js";
import type { SettingsByKey } from "./setting-tiers.js";

/** Value of `window.ENV` in a page without a credential. */
export interface PageEnv {
  appId: number;
  /** URL of the service's API, without a trailing slash. */
  apiUrl: string;
  /** `viewer`: the page shows drafts to an editor. `live`: the page shows live versions to visitors. */
  environment: "viewer" | "live";
  appSettings: SettingsByKey;
  clientTimeoutMs: number;
}

/** Value of `window.ENV` in a page that has a session: the page sends a cookie, or the token in `token`. */
export interface PageEnvWithSession extends PageEnv {
  session: AppSession;
  /** Token of a page that has no cookie. The client library removes the token from `window.ENV` when it loads. */
  token?: string;
}

/** Matches characters that could end the script element, start an HTML comment in it, or end a string in older JavaScript. */
const UNSAFE_CHARACTER_PATTERN = /[<>\u2028\u2029]/g;

/** Returns the value as a JavaScript literal that is safe inside a script element. */
export function toScriptLiteral(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSAFE_CHARACTER_PATTERN,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Builds the script that sets `window.ENV`. It parses `env` from a JSON string, because in an object literal, the key `"__proto__"` would
 * set the prototype.
 */
export function buildWindowEnvScript(env: PageEnv): string {
  return `window.ENV = JSON.parse(${toScriptLiteral(JSON.stringify(env))});\n`;
}
