/** Builds the log events of data sources (specification, Log event types; contract, packages). */
import { UPDATE_NAMES_MAX_BYTES } from "../../limits.js";

export type EntryEvent = "create" | "update" | "delete";

/** Returns as many of the names, from the first on, as fit into a log event. */
function limitNames(names: readonly string[]): string[] {
  let bytes = 0;
  const tooFar = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > UPDATE_NAMES_MAX_BYTES;
  });
  return tooFar < 0 ? [...names] : names.slice(0, tooFar);
}

/**
 * Returns the event's field with the e-mail address of the app user who changed the entry. For a change by another caller, the event has no
 * such field.
 */
const userEmailField = (email: string | null) => (email === null ? {} : { _userEmail: email });

/** Builds the log event for one changed entry. `columns` are the written columns; for a removed entry, all its columns. */
export function createEntryEvent(event: EntryEvent, columns: readonly string[], userEmail: string | null) {
  return { type: `dataSource.entry.${event}`, data: { columns: limitNames(columns), ...userEmailField(userEmail) } };
}

/** Numbers of entries that one bulk change inserted, updated and deleted. A bulk change emits one log event. */
export interface BulkCounts {
  operation: string;
  inserted: number;
  updated: number;
  deleted: number;
}

export function createBulkEvent(counts: BulkCounts, columns: readonly string[], userEmail: string | null) {
  return { type: "dataSource.import", data: { ...counts, columns: limitNames(columns), ...userEmailField(userEmail) } };
}

/** Type of the audit log entry for a change of entries. */
export const ENTRIES_CHANGED_TYPE = "dataSource.entries";
const LISTED_IDS_MAX = 20;

/** Changes of a data source's entries that one transaction made. */
interface EntryEventChange {
  operation: string | null;
  counts: { inserted: number; updated: number; deleted: number };
  events: readonly { event: EntryEvent; id: number; columns: readonly string[] }[];
}

/** Returns the data of an audit log entry: IDs, counts and names of columns, never values. */
export function summarizeEntryChange(dataSourceId: number, { operation, counts, events }: EntryEventChange) {
  const columns = [...new Set(events.flatMap((event) => event.columns))];
  const entries = events.slice(0, LISTED_IDS_MAX).map(({ event, id }) => ({ event, id }));
  return {
    id: dataSourceId,
    ...(operation !== null && { operation }),
    ...counts,
    entries,
    columns: limitNames(columns),
  };
}
