/** TypeScript types of an entry, and functions that remove the columns that a caller cannot see. */
import type { VisibleEntryScope } from "../../rules/entry-query/options.js";
import type { JsonText } from "../../rules/json-text.js";

/** An entry in the form that callers receive. Times are ISO 8601. */
export interface Entry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown> | JsonText;
  order: number;
  createdAt: string;
  updatedAt: string;
}

/** An entry in the form in which the database stores it, with all columns. */
export interface StoredEntry {
  id: number;
  data: Record<string, unknown>;
  order: number;
  createdAt: Date;
  updatedAt: Date;
}

export function pickVisibleColumns(
  data: Record<string, unknown>,
  canSeeColumn: (column: string) => boolean,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(data).filter(([column]) => canSeeColumn(column)));
}

/** Converts a stored entry to the form that callers receive, without the columns that the caller cannot see. */
export function toEntry(
  entry: StoredEntry,
  dataSourceId: number,
  canSeeColumn: VisibleEntryScope["canSeeColumn"],
): Entry {
  const { id, order, createdAt, updatedAt } = entry;
  const entryTimes = { createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
  return { id, dataSourceId, data: pickVisibleColumns(entry.data, canSeeColumn), order, ...entryTimes };
}
