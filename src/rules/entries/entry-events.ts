/** Builds the log events of data sources (specification, Log event types; contract, packages). */
import { UPDATE_NAMES_MAX_BYTES } from "../../limits.js";

export type EntryEvent = "create" | "update" | "delete";

/** Returns the first names, as many as fit into an event. */
function limitNames(names: readonly string[]): string[] {
  let bytes = 0;
  const tooFar = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > UPDATE_NAMES_MAX_BYTES;
  });
  return tooFar < 0 ? [...names] : names.slice(0, tooFar);
}

/** Returns the event's field with the app user who wrote. The service itself adds the name of a person of the organization. */
const userEmailField = (email: string | null) => (email === null ? {} : { _userEmail: email });

/** Builds the event of one entry. `columns` are the written columns or, for a removed entry, all its columns. */
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

/** Changes of a data source by one transaction. */
interface EntryEventChange {
  operation: string | null;
  counts: { inserted: number; updated: number; deleted: number };
  events: readonly { event: EntryEvent; id: number; columns: readonly string[] }[];
}

/** Returns the data of an audit log entry: IDs, counts and names of columns, never values. */
export function entryChangeSummary(dataSourceId: number, { operation, counts, events }: EntryEventChange) {
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
