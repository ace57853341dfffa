/**
 * Computes the message to a subscriber about changed entries: those that start to match the subscriber's `where`, change while they match,
 * or stop matching.
 */
import { LIST_PAGE_MAX_BYTES } from "../../limits.js";
import { UNRESTRICTED_ENTRY_SCOPE, type VisibleEntryScope } from "../../rules/entry-query/options.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import { compileWhere } from "../../rules/entry-query/where.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { createEntryDocumentSource, type EntryRow, type EntryView, rowToEntryView } from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

/** Maximum number of entries in one message. If more have changed, the subscriber must read all entries again. */
const MAX_ENTRIES_PER_MESSAGE = 1_000;

/** State of an entry before a change. */
interface EarlierEntryState {
  id: number;
  data: object;
  order: number;
  createdAt: string;
  updatedAt: string;
}

/** Record of one transaction that changed entries, as entry-changes.ts stores it. */
export interface StoredEntryChangeSet {
  id: number;
  bulk: boolean;
  inserted: number[];
  replaced: EarlierEntryState[];
}

export interface EntryDifferences {
  inserted: EntryView[];
  updated: EntryView[];
  /** Entries that were deleted or no longer match the `where`, each with its data from before all changes of this message. */
  deleted: EntryView[];
}

type DifferenceRow = EntryRow & { wasVisible: boolean; isVisible: boolean; changed: string[] | null };

/** Returns by ID the state of each affected entry before its first change; null for an entry that did not exist before. */
function collectEarlierStates(changes: readonly StoredEntryChangeSet[]): Map<number, EarlierEntryState | null> {
  const statesById = new Map<number, EarlierEntryState | null>();
  for (const { inserted, replaced } of changes) {
    // A restore of a snapshot first removes entries and then inserts them with the same IDs. So removals are handled before inserts.
    for (const state of replaced) if (!statesById.has(state.id)) statesById.set(state.id, state);
    for (const id of inserted) if (!statesById.has(id)) statesById.set(id, null);
  }
  return statesById;
}

function matchConditionSql(
  alias: string,
  { scope, where }: { scope: VisibleEntryScope; where: unknown },
  statement: SqlStatement,
): string {
  const filter = compileWhere(
    scope.filter,
    createEntryDocumentSource(alias, UNRESTRICTED_ENTRY_SCOPE.canSeeColumn),
    statement,
  );
  return `${filter} AND ${compileWhere(where, createEntryDocumentSource(alias, scope.canSeeColumn), statement)}`;
}

/** SQL for the names of the top-level columns in which the earlier state `b` of an entry differs from the current state `e`. */
const CHANGED_COLUMNS_SQL = `
  ARRAY(SELECT key FROM jsonb_each(b.doc) AS old (key, was) FULL JOIN jsonb_each(e.doc) AS new (key, is_now) USING (key)
         WHERE old.was IS DISTINCT FROM new.is_now)`;

/**
 * Reads the entries that the changes affect, and compares their earlier states with their current states.
 * @param requested the subscriber's rights and `where`. If `onlyVisible` is true, leaves out entries whose order and
 *   visible columns have not changed
 * @returns null if the entries do not fit into one message, or if a change does not list its entries
 */
export async function readEntryDifferences(
  read: ReadRows,
  source: StoredDataSource,
  requested: { scope: VisibleEntryScope; where: unknown; onlyVisible: boolean },
  changes: readonly StoredEntryChangeSet[],
): Promise<EntryDifferences | null> {
  const earlierStates = collectEarlierStates(changes);
  if (changes.some(({ bulk }) => bulk)) return null;
  const statement = new SqlStatement(
    JSON.stringify([...earlierStates].map(([id, state]) => state ?? { id })),
    source.appId,
    source.id,
  );
  const columns = ["id", '"order"', "created_at", "updated_at"].map((column) => `e.${column}`).join(", ");
  // Reads earlier states as `json`, which keeps the order of keys, and as `jsonb`, for the conditions of a `where`.
  const sql = `
    WITH b AS MATERIALIZED (
      SELECT (state ->> 'id')::bigint AS id, (state -> 'data')::jsonb AS doc, state ->> 'data' AS text, (state ->> 'order')::float8 AS "order",
             (state ->> 'createdAt')::timestamptz AS created_at, (state ->> 'updatedAt')::timestamptz AS updated_at
        FROM json_array_elements($1::json) AS state)
    SELECT b.id AS of, ${columns}, e.data::text AS data,
           e.id IS NOT NULL AND (${matchConditionSql("e", requested, statement)}) AS "isVisible",
           b.doc IS NOT NULL AND (${matchConditionSql("b", requested, statement)}) AS "wasVisible",
           CASE WHEN ${requested.onlyVisible} AND e.id IS NOT NULL AND b."order" = e."order" THEN ${CHANGED_COLUMNS_SQL} END AS changed,
           b.text AS old_data, b."order" AS old_order, b.created_at AS old_created_at, b.updated_at AS old_updated_at
      FROM b LEFT JOIN data_source_entry e ON e.app_id = $2 AND e.data_source_id = $3 AND e.id = b.id ORDER BY b.id`;
  const rows = await read<DifferenceRow & Record<string, unknown>>(source.appId, sql, statement.values);
  const toEntryView = (row: EntryRow) => rowToEntryView(row, source.id, requested.scope, null);
  const old = (row: Record<string, unknown>) =>
    toEntryView({
      id: row["of"],
      order: row["old_order"],
      created_at: row["old_created_at"],
      updated_at: row["old_updated_at"],
      data: row["old_data"],
    } as EntryRow);
  const result: EntryDifferences = { inserted: [], updated: [], deleted: [] };
  let bytes = 0;
  let count = 0;
  for (const row of rows) {
    if (!row.wasVisible && !row.isVisible) continue;
    if (row.wasVisible && row.isVisible && row.changed && !row.changed.some(requested.scope.canSeeColumn)) continue;
    const entry = row.isVisible ? toEntryView(row) : old(row);
    bytes += entry.data.text.length;
    count += 1;
    if (bytes > LIST_PAGE_MAX_BYTES || count > MAX_ENTRIES_PER_MESSAGE) return null;
    if (!row.isVisible) result.deleted.push(entry);
    else if (row.wasVisible) result.updated.push(entry);
    else result.inserted.push(entry);
  }
  return result;
}
