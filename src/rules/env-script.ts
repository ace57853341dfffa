/** The script that sets `window.ENV` in an app's page (specification, App settings, rule 2). Pure; knows no credential. */
import type { SettingsView } from "./setting-tiers.js";

/** What the app's own code, and the client library, know of where they run. */
export interface RuntimeEnv {
  appId: number;
  /** Origin of the API. */
  apiUrl: string;
  /** `viewer`: the app viewer, master copies; `live`: the live app, production copies. */
  environment: "viewer" | "live";
  /** Public keys alone. */
  appSettings: SettingsView;
  /** Milliseconds that a client action may take. */
  clientTimeoutMs: number;
}

/** What ends a script element, opens a comment in one, or once ended a line inside a string. */
const UNSAFE = /[<>\u2028\u2029]/g;

/**
 * The values stand in a string literal that JSON.parse reads: in an object literal `"__proto__"` would set a prototype, here it is
 * a property like any other.
 */
export function envScript(env: RuntimeEnv): string {
  const literal = JSON.stringify(JSON.stringify(env)).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `window.ENV = JSON.parse(${literal});\n`;
}
