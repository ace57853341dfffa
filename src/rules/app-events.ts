/** Builds log events about changes of an app. The events contain the names of changed fields, never their values. */
import { APP_UPDATE_EVENT_NAMES_MAX_BYTES } from "../limits.js";

/** Change of an app: names of the changed fields, and the keys of changed settings if `settings` is one of the fields. */
export interface AppFieldChanges {
  fields: readonly string[];
  keys?: readonly string[];
}

/** Returns as many of the names, from the first, as fit into one log event, and the number of omitted names. */
function selectKeysThatFit(names: readonly string[]): { keys: string[]; keysOmitted?: number } {
  let bytes = 0;
  const tooFar = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > APP_UPDATE_EVENT_NAMES_MAX_BYTES;
  });
  const keys = tooFar < 0 ? [...names] : names.slice(0, tooFar);
  return keys.length === names.length ? { keys } : { keys, keysOmitted: names.length - keys.length };
}

/** Builds the event `app.update`, whose data are `{fields, keys?, keysOmitted?}`. */
export function createAppUpdateEvent({ fields, keys }: AppFieldChanges): { type: string; data: object } {
  return { type: "app.update", data: { fields, ...(keys && selectKeysThatFit(keys)) } };
}

/**
 * Builds the event `app.view`: a user has opened a page of the app, with live versions (`live`) or with drafts
 * (`viewer`).
 */
export function createAppViewEvent(environment: "live" | "viewer"): { type: string; data: object } {
  return { type: "app.view", data: { environment } };
}
