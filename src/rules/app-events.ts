/** Builds log events about changes of an app: the names of the changed fields, never a value. Stores nothing. */
import { UPDATE_NAMES_MAX_BYTES } from "../limits.js";

/** A change: names of the app's fields, including `settings`, and keys of settings. */
export interface AppChange {
  fields: readonly string[];
  keys?: readonly string[];
}

/** Returns the first names that fit into an event, and the number of omitted ones. */
function keysThatFit(names: readonly string[]): { keys: string[]; keysOmitted?: number } {
  let bytes = 0;
  const tooFar = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > UPDATE_NAMES_MAX_BYTES;
  });
  const keys = tooFar < 0 ? [...names] : names.slice(0, tooFar);
  return keys.length === names.length ? { keys } : { keys, keysOmitted: names.length - keys.length };
}

/** The event `app.update`: `{fields, keys?, keysOmitted?}`. */
export function appUpdate({ fields, keys }: AppChange): { type: string; data: object } {
  return { type: "app.update", data: { fields, ...(keys && keysThatFit(keys)) } };
}

/** The event `app.view`: `{environment}`, of the page that was opened. */
export function appView(environment: "live" | "viewer"): { type: string; data: object } {
  return { type: "app.view", data: { environment } };
}
