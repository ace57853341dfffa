/**
 * Computes the message that a subscriber receives after changes: entries that start to match the subscriber's `where`,
 * change while they match, or stop matching. Has no state.
 */
import { PAGE_MAX_BYTES } from "../../limits.js";
import { type EntryScope, FULL_SCOPE } from "../../rules/entry-query/options.js";
import { Statement } from "../../rules/entry-query/statement.js";
import { compileWhere } from "../../rules/entry-query/where.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { type EntryView, type RawRow, sourceOf, viewOf } from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

/**
 * Maximum number of entries in one message. Entries that the subscriber cannot see, or that do not match its `where`,
 * do not count.
 */
const ENTRIES_PER_MESSAGE = 1_000;

/** An entry as it was before a change. */
interface EntryImage {
  id: number;
  data: object;
  order: number;
  createdAt: string;
  updatedAt: string;
}

/** A change as stored by entry-changes.ts. */
export interface StoredChange {
  id: number;
  bulk: boolean;
  inserted: number[];
  replaced: EntryImage[];
}

export interface EntryDifferences {
  inserted: EntryView[];
  updated: EntryView[];
  /** Entries that were deleted or no longer match, each in its last state that the subscriber could see. */
  deleted: EntryView[];
}

type Row = RawRow & { was: boolean; is: boolean; changed: string[] | null };

/** Returns the changed entries by ID, each with its state before the first change; null for a new entry. */
function touchedEntries(changes: readonly StoredChange[]): Map<number, EntryImage | null> {
  const imagesById = new Map<number, EntryImage | null>();
  for (const { inserted, replaced } of changes) {
    // A restore removes entries and inserts them again with the same IDs. So removals are added before inserts.
    for (const image of replaced) if (!imagesById.has(image.id)) imagesById.set(image.id, image);
    for (const id of inserted) if (!imagesById.has(id)) imagesById.set(id, null);
  }
  return imagesById;
}

function matchCondition(
  alias: string,
  { scope, where }: { scope: EntryScope; where: unknown },
  statement: Statement,
): string {
  const filter = compileWhere(scope.filter, sourceOf(alias, FULL_SCOPE.canSee), statement);
  return `${filter} AND ${compileWhere(where, sourceOf(alias, scope.canSee), statement)}`;
}

/** SQL array of the top-level columns that differ between the earlier and the present state, compared as `jsonb`. */
const SELECT_CHANGED_ENTRIES = `
  ARRAY(SELECT key FROM jsonb_each(b.doc) AS old (key, was) FULL JOIN jsonb_each(e.doc) AS new (key, is_now) USING (key)
         WHERE old.was IS DISTINCT FROM new.is_now)`;

/**
 * Reads the entries that the changes affect, and compares their earlier with their present state.
 * @param requested the subscriber's rights and `where`. `onlyVisible` leaves out entries whose visible columns and
 *   order are unchanged
 * @returns null if the entries do not fit into one message, or a change does not list its entries
 */
export async function readDifferences(
  read: ReadRows,
  source: StoredDataSource,
  requested: { scope: EntryScope; where: unknown; onlyVisible: boolean },
  changes: readonly StoredChange[],
): Promise<EntryDifferences | null> {
  const touchedImages = touchedEntries(changes);
  if (changes.some(({ bulk }) => bulk)) return null;
  const statement = new Statement(
    JSON.stringify([...touchedImages].map(([id, image]) => image ?? { id })),
    source.appId,
    source.id,
  );
  const columns = ["id", '"order"', "created_at", "updated_at"].map((column) => `e.${column}`).join(", ");
  // Earlier states are read as json, which keeps the order of keys, and as jsonb, which a `where` needs.
  const sql = `
    WITH b AS MATERIALIZED (
      SELECT (image ->> 'id')::bigint AS id, (image -> 'data')::jsonb AS doc, image ->> 'data' AS text, (image ->> 'order')::float8 AS "order",
             (image ->> 'createdAt')::timestamptz AS created_at, (image ->> 'updatedAt')::timestamptz AS updated_at
        FROM json_array_elements($1::json) AS image)
    SELECT b.id AS of, ${columns}, e.data::text AS data, e.id IS NOT NULL AND (${matchCondition("e", requested, statement)}) AS is,
           b.doc IS NOT NULL AND (${matchCondition("b", requested, statement)}) AS was,
           CASE WHEN ${requested.onlyVisible} AND e.id IS NOT NULL AND b."order" = e."order" THEN ${SELECT_CHANGED_ENTRIES} END AS changed,
           b.text AS old_data, b."order" AS old_order, b.created_at AS old_created_at, b.updated_at AS old_updated_at
      FROM b LEFT JOIN data_source_entry e ON e.app_id = $2 AND e.data_source_id = $3 AND e.id = b.id ORDER BY b.id`;
  const rows = await read<Row & Record<string, unknown>>(source.appId, sql, statement.values);
  const toEntryView = (row: RawRow) => viewOf(row, source.id, requested.scope, null);
  const old = (row: Record<string, unknown>) =>
    toEntryView({
      id: row["of"],
      order: row["old_order"],
      created_at: row["old_created_at"],
      updated_at: row["old_updated_at"],
      data: row["old_data"],
    } as RawRow);
  const result: EntryDifferences = { inserted: [], updated: [], deleted: [] };
  let bytes = 0;
  let count = 0;
  for (const row of rows) {
    if (!row.was && !row.is) continue;
    if (row.was && row.is && row.changed && !row.changed.some(requested.scope.canSee)) continue;
    const entry = row.is ? toEntryView(row) : old(row);
    bytes += entry.data.text.length;
    count += 1;
    if (bytes > PAGE_MAX_BYTES || count > ENTRIES_PER_MESSAGE) return null;
    if (!row.is) result.deleted.push(entry);
    else if (row.was) result.updated.push(entry);
    else result.inserted.push(entry);
  }
  return result;
}
