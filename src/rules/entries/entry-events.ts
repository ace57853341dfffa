/** Log events of data sources (specification, Log event types; contract, packages): what they say. Stores nothing. */
import { UPDATE_NAMES_MAX_BYTES } from "../../limits.js";

export type EntryEvent = "create" | "update" | "delete";

/** The first names that fit into an event. */
function fitting(names: readonly string[]): string[] {
  let bytes = 0;
  const tooFar = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > UPDATE_NAMES_MAX_BYTES;
  });
  return tooFar < 0 ? [...names] : names.slice(0, tooFar);
}

/** Who did it, where it was a page's user; a person of the organization is named by the service itself. */
const byUser = (email: string | null) => (email === null ? {} : { _userEmail: email });

/** `columns`: those that were written or, of a removed entry, that it had. */
export function entryEvent(event: EntryEvent, columns: readonly string[], userEmail: string | null) {
  return { type: `dataSource.entry.${event}`, data: { columns: fitting(columns), ...byUser(userEmail) } };
}

/** Once for a bulk. */
export interface BulkCounts {
  operation: string;
  inserted: number;
  updated: number;
  deleted: number;
}

export function importEvent(counts: BulkCounts, columns: readonly string[], userEmail: string | null) {
  return { type: "dataSource.import", data: { ...counts, columns: fitting(columns), ...byUser(userEmail) } };
}
