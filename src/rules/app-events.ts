/** Builds log events about changes of an app. The events contain the names of changed fields, never their values. */
import { APP_UPDATE_EVENT_FIELD_NAMES_MAX_BYTES } from "../limits.js";

/** Names of an app's changed fields. If `settings` is one of them, `keys` contains the keys of the changed settings. */
export interface AppFieldChanges {
  fields: readonly string[];
  keys?: readonly string[];
}

/** Returns as many names as fit into one log event, in their order, and the number of omitted names. */
function selectKeysThatFit(names: readonly string[]): { keys: string[]; keysOmitted?: number } {
  let bytes = 0;
  const firstOmittedIndex = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > APP_UPDATE_EVENT_FIELD_NAMES_MAX_BYTES;
  });
  const keys = firstOmittedIndex < 0 ? [...names] : names.slice(0, firstOmittedIndex);
  return keys.length === names.length ? { keys } : { keys, keysOmitted: names.length - keys.length };
}

/** Builds the event `app.update`, whose data are `{fields, keys?, keysOmitted?}`. */
export function createAppUpdateEvent({ fields, keys }: AppFieldChanges): { type: string; data: object } {
  return { type: "app.update", data: { fields, ...(keys && selectKeysThatFit(keys)) } };
}

/** Builds the event `app.view`: a user has opened a page with live versions of actions (`live`) or with drafts (`viewer`). */
export function createAppViewEvent(environment: "live" | "viewer"): { type: string; data: object } {
  return { type: "app.view", data: { environment } };
}
