/** Builds log events about changes of entries (specification, Log event types). */
import { APP_UPDATE_EVENT_FIELD_NAMES_MAX_BYTES } from "../../limits.js";

export type EntryEvent = "create" | "update" | "delete";

/** Returns as many of the column names as fit into one log event, in their order. */
function limitNames(names: readonly string[]): string[] {
  let bytes = 0;
  const firstOmittedIndex = names.findIndex((name) => {
    bytes += Buffer.byteLength(JSON.stringify(name)) + 1;
    return bytes > APP_UPDATE_EVENT_FIELD_NAMES_MAX_BYTES;
  });
  return firstOmittedIndex < 0 ? [...names] : names.slice(0, firstOmittedIndex);
}

/** Returns the event's field with the e-mail address of the app user who changed the entry; {} if there is no address. */
const createUserEmailField = (email: string | null) => (email === null ? {} : { _userEmail: email });

/** Builds the log event for one changed entry. @param columns names of the written columns, or of all columns if the entry was removed */
export function createEntryEvent(event: EntryEvent, columns: readonly string[], userEmail: string | null) {
  return {
    type: `dataSource.entry.${event}`,
    data: { columns: limitNames(columns), ...createUserEmailField(userEmail) },
  };
}

/** Numbers of entries that one bulk change inserted, updated and deleted. One log event describes the whole change. */
export interface BulkChangeCounts {
  operation: string;
  inserted: number;
  updated: number;
  deleted: number;
}

export function createBulkChangeEvent(counts: BulkChangeCounts, columns: readonly string[], userEmail: string | null) {
  return {
    type: "dataSource.import",
    data: { ...counts, columns: limitNames(columns), ...createUserEmailField(userEmail) },
  };
}

export const ENTRIES_CHANGED_AUDIT_TYPE = "dataSource.entries";
const LISTED_IDS_MAX = 20;

interface EntryEventChange {
  operation: string | null;
  counts: { inserted: number; updated: number; deleted: number };
  logEvents: readonly { event: EntryEvent; id: number; columns: readonly string[] }[];
}

/** Returns the data of an audit log entry: counts, some IDs, and names of columns, but no values. */
export function summarizeEntryChange(dataSourceId: number, { operation, counts, logEvents }: EntryEventChange) {
  const columns = [...new Set(logEvents.flatMap((event) => event.columns))];
  const entries = logEvents.slice(0, LISTED_IDS_MAX).map(({ event, id }) => ({ event, id }));
  return {
    id: dataSourceId,
    ...(operation !== null && { operation }),
    ...counts,
    entries,
    columns: limitNames(columns),
  };
}
