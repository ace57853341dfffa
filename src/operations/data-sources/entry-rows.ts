/** Builds SQL that selects entries, and converts the rows to the form in which entries are returned. */
import { PAGE_MAX_BYTES } from "../../limits.js";
import { type EntryScope, FULL_SCOPE } from "../../rules/entry-query/options.js";
import type { Source } from "../../rules/entry-query/path.js";
import type { Statement } from "../../rules/entry-query/statement.js";
import { compileWhere } from "../../rules/entry-query/where.js";
import { memberTexts } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";

/** Identifies a data source. */
export interface DataSourceKey {
  id: number;
  appId: number;
}

/** An entry as it is returned to callers. Times are ISO 8601. */
export interface EntryView {
  id: number;
  dataSourceId: number;
  data: JsonText;
  order: number;
  createdAt: string;
  updatedAt: string;
  /** Results of joins, by the names of the joins in the query. */
  joins?: Record<string, unknown>;
}

/** Describes an entry to the query compilers. @param entry SQL alias of the entry */
export const sourceOf = (entry: string, canSee: (column: string) => boolean): Source => ({
  doc: `${entry}.doc`,
  entry,
  sees: canSee,
});

/**
 * Returns the SQL condition for the entries of a data source that the scope includes and that match `where`. @param
 * entry SQL alias of the entry
 */
export function entriesOf(
  key: DataSourceKey,
  { scope, where, ids }: { scope: EntryScope; where: unknown; ids?: readonly number[] | undefined },
  statement: Statement,
  entry: string,
): string {
  const conditions = [
    `${entry}.app_id = ${statement.bind(key.appId, "bigint")}`,
    `${entry}.data_source_id = ${statement.bind(key.id, "integer")}`,
  ];
  if (ids) conditions.push(`${entry}.id = ANY(${statement.bind(ids, "bigint[]")})`);
  if (scope.filter) conditions.push(compileWhere(scope.filter, sourceOf(entry, FULL_SCOPE.canSee), statement));
  conditions.push(compileWhere(where, sourceOf(entry, scope.canSee), statement));
  return conditions.join(" AND ");
}

/**
 * A select with at most this limit reads all its rows, and `fittingRows` drops those beyond PAGE_MAX_BYTES. Larger ones
 * drop rows in SQL.
 */
const READ_WHOLE_MAX = 16;

/**
 * Returns SQL for the first rows of a select that fit into PAGE_MAX_BYTES, at least one row. Entries are converted to
 * text after sorting, so that PostgreSQL sorts small rows.
 * @param select SQL that selects `rowColumns` and the columns in `more`, sorted
 * @param limit the select's LIMIT
 */
export function boundBySize(select: string, limit: number, more: readonly string[] = []): string {
  const columns = ["id", '"order"', "created_at", "updated_at", "data::text AS data", ...more].join(", ");
  const totalColumn = more.includes("found") ? ", count(*) OVER () AS found" : "";
  if (limit <= READ_WHOLE_MAX)
    return `SELECT ${columns} FROM (SELECT chosen.*${totalColumn} FROM (${select}) chosen) sized`;
  return `
    SELECT ${columns} FROM (
      SELECT chosen.*, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes, row_number() OVER () AS place${totalColumn} FROM (${select}) chosen) sized
     WHERE total_bytes <= ${PAGE_MAX_BYTES} OR place = 1 ORDER BY place`;
}

/**
 * Returns the first rows that fit into PAGE_MAX_BYTES, at least one. Needed for pages that `boundBySize` does not bound
 * in SQL.
 */
export function fittingRows<Row extends { data: string }>(rows: Row[]): Row[] {
  let heldBytes = 0;
  const rowCount = rows.findIndex(({ data }, index) => {
    heldBytes += Buffer.byteLength(data);
    return index > 0 && heldBytes > PAGE_MAX_BYTES;
  });
  return rowCount < 0 ? rows : rows.slice(0, rowCount);
}

export const rowColumns = (entry: string): string =>
  ["id", '"order"', "created_at", "updated_at", "data", "bytes"].map((column) => `${entry}.${column}`).join(", ");

/** Returns the JSON text of an object without its hidden columns. The other columns keep their text and order. */
function pruneColumns(text: string, isShown: (column: string) => boolean): string {
  const members = [...memberTexts(text)].flatMap(([column, value]) =>
    isShown(column) ? [`${JSON.stringify(column)}:${value}`] : [],
  );
  return `{${members.join(",")}}`;
}

export interface RawRow {
  id: number;
  order: number;
  created_at: Date;
  updated_at: Date;
  data: string;
}

/** Converts a row to an entry. @param attributes the only columns to include; null for all that the scope includes */
export function viewOf(
  row: RawRow,
  dataSourceId: number,
  scope: EntryScope,
  attributes: ReadonlySet<string> | null,
): EntryView {
  // If all columns are shown, the JSON text is returned without parsing it.
  const isWhole = scope.canSee === FULL_SCOPE.canSee && attributes === null;
  const isShown = (column: string) => scope.canSee(column) && (attributes === null || attributes.has(column));
  return {
    id: row.id,
    dataSourceId,
    data: new JsonText(isWhole ? row.data : pruneColumns(row.data, isShown)),
    order: row.order,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}
