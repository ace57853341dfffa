/** TypeScript types of an entry, and functions that remove the columns that a caller cannot see. */
import type { EntryScope } from "../../rules/entry-query/options.js";
import type { JsonText } from "../../rules/json-text.js";

/** An entry as it is returned to callers. Times are ISO 8601. */
export interface Entry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown> | JsonText;
  order: number;
  createdAt: string;
  updatedAt: string;
}

/** An entry as it is stored, with all columns. */
export interface StoredEntry {
  id: number;
  data: Record<string, unknown>;
  order: number;
  createdAt: Date;
  updatedAt: Date;
}

/** Returns the data without the columns that the caller cannot see. */
export function visibleColumns(
  data: Record<string, unknown>,
  canSee: (column: string) => boolean,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(data).filter(([column]) => canSee(column)));
}

/** Converts a stored entry to the form that is returned to callers. */
export function entryView(entry: StoredEntry, dataSourceId: number, canSee: EntryScope["canSee"]): Entry {
  const { id, order, createdAt, updatedAt } = entry;
  const entryTimes = { createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
  return { id, dataSourceId, data: visibleColumns(entry.data, canSee), order, ...entryTimes };
}
