/** Builds log events of data sources (specification, Log event types; contract, packages). Stores nothing. */
import { UPDATE_NAMES_MAX_BYTES } from "../../limits.js";

export type EntryEvent = "create" | "update" | "delete";

/** Returns as many of the names as fit into an event, from the first. */
function limitNames(names: readonly string[]): string[] {
  let bytes = 0;
  const tooFar = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > UPDATE_NAMES_MAX_BYTES;
  });
  return tooFar < 0 ? [...names] : names.slice(0, tooFar);
}

/** Returns the field with the page's user who has written. For a person of the organization, the service adds the name itself. */
const userEmailField = (email: string | null) => (email === null ? {} : { _userEmail: email });

/** Builds the event of one entry. `columns` are the written ones or, for a removed entry, all that it had. */
export function entryEvent(event: EntryEvent, columns: readonly string[], userEmail: string | null) {
  return { type: `dataSource.entry.${event}`, data: { columns: limitNames(columns), ...userEmailField(userEmail) } };
}

/** Numbers of written and removed entries in a bulk change, which emits one event. */
export interface BulkCounts {
  operation: string;
  inserted: number;
  updated: number;
  deleted: number;
}

export function importEvent(counts: BulkCounts, columns: readonly string[], userEmail: string | null) {
  return { type: "dataSource.import", data: { ...counts, columns: limitNames(columns), ...userEmailField(userEmail) } };
}

/** Type of the audit log entry for a change of entries. */
export const ENTRIES_CHANGED = "dataSource.entries";
const IDS_NAMED = 20;

/** What one transaction has changed in a data source. */
interface EntryEventChange {
  operation: string | null;
  counts: { inserted: number; updated: number; deleted: number };
  events: readonly { event: EntryEvent; id: number; columns: readonly string[] }[];
}

/** Returns data of a change for the audit log: IDs, numbers and names of columns, never a value. */
export function changeHead(dataSourceId: number, { operation, counts, events }: EntryEventChange) {
  const columns = [...new Set(events.flatMap((event) => event.columns))];
  const entries = events.slice(0, IDS_NAMED).map(({ event, id }) => ({ event, id }));
  return {
    id: dataSourceId,
    ...(operation !== null && { operation }),
    ...counts,
    entries,
    columns: limitNames(columns),
  };
}
