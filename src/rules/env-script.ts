/** Builds the script that sets `window.ENV` in an app's page (specification, App settings, rule 2). */
import type { AppSession } from "./app-session.js";
import type { SettingsByKey } from "./setting-tiers.js";

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
