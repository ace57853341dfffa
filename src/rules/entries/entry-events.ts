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

/** Of the trail: a change of entries. */
export const ENTRIES_CHANGED = "dataSource.entries";
const IDS_NAMED = 20;

/** What a transaction did to entries. */
interface Change {
  operation: string | null;
  counts: { inserted: number; updated: number; deleted: number };
  events: readonly { event: EntryEvent; id: number; columns: readonly string[] }[];
}

/** What the trail says of a change: which entries, how many, which columns were named. Never a value. */
export function changeHead(dataSourceId: number, { operation, counts, events }: Change) {
  const columns = [...new Set(events.flatMap((one) => one.columns))];
  const entries = events.slice(0, IDS_NAMED).map(({ event, id }) => ({ event, id }));
  return { id: dataSourceId, ...(operation !== null && { operation }), ...counts, entries, columns: fitting(columns) };
}
