/** Selects rows of entries and converts them to the form that readers get. */
import { PAGE_MAX_BYTES } from "../../limits.js";
import { type EntryScope, FULL_SCOPE } from "../../rules/entry-query/options.js";
import type { Source } from "../../rules/entry-query/path.js";
import type { Statement } from "../../rules/entry-query/statement.js";
import { compileWhere } from "../../rules/entry-query/where.js";
import { memberTexts } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";

/** Key of a data source. */
export interface DataSourceKey {
  id: number;
  appId: number;
}

/** An entry (contract, packages). Times are ISO 8601. */
export interface EntryView {
  id: number;
  dataSourceId: number;
  data: JsonText;
  order: number;
  createdAt: string;
  updatedAt: string;
  /** Joined entries by the names in the query. */
  joins?: Record<string, unknown>;
}

export const sourceOf = (entry: string, canSee: (column: string) => boolean): Source => ({
  doc: `${entry}.doc`,
  entry,
  sees: canSee,
});

/** SQL condition for the visible entries of a data source. It always starts with the app. */
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

/** For at most this many rows, all are read with their data, and the page is cut here instead of in SQL. */
const READ_WHOLE_MAX = 16;

/**
 * Returns the first rows of a select that fit into PAGE_MAX_BYTES, at least one. PostgreSQL decompresses the texts after
 * sorting, so that it sorts small rows.
 * @param select of `rowColumns` and `more`, in order
 * @param limit of the select
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

/** Cuts a small page, whose rows were all read, to PAGE_MAX_BYTES. */
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

/** Returns the object's JSON text without hidden columns. The other columns keep their text and order. */
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

/** @param attributes columns that the caller requests; the others are left out */
export function viewOf(
  row: RawRow,
  dataSourceId: number,
  scope: EntryScope,
  attributes: ReadonlySet<string> | null,
): EntryView {
  // An object without hidden members is not parsed.
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
