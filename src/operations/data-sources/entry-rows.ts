/** Builds SQL that selects entries, and converts the selected rows to the form that callers receive. */
import { LIST_PAGE_MAX_BYTES } from "../../limits.js";
import { UNRESTRICTED_ENTRY_SCOPE, type VisibleEntryScope } from "../../rules/entry-query/options.js";
import type { QueriedDocument } from "../../rules/entry-query/path.js";
import type { SqlStatement } from "../../rules/entry-query/statement.js";
import { compileWhere } from "../../rules/entry-query/where.js";
import { readJsonFieldTexts } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";

export interface DataSourceKey {
  id: number;
  appId: number;
}

/** An entry in the form that callers receive. Times are ISO 8601. */
export interface EntryView {
  id: number;
  dataSourceId: number;
  data: JsonText;
  order: number;
  createdAt: string;
  updatedAt: string;
  /** Results of the query's joins, by the name of each join. */
  joins?: Record<string, unknown>;
}

/**
 * Returns the SQL expressions for an entry, which `compileWhere` uses to compile a query.
 * @param entry SQL alias of the entry
 */
export const createEntryDocumentSource = (
  entry: string,
  canSeeColumn: (column: string) => boolean,
): QueriedDocument => ({
  documentSql: `${entry}.doc`,
  entryAlias: entry,
  canSeeColumn,
});

/**
 * Returns the SQL condition for the entries of a data source that are in the scope and match `where`.
 * @param entry SQL alias of the entry
 */
export function entryConditionSql(
  key: DataSourceKey,
  { scope, where, ids }: { scope: VisibleEntryScope; where: unknown; ids?: readonly number[] | undefined },
  statement: SqlStatement,
  entry: string,
): string {
  const conditions = [
    `${entry}.app_id = ${statement.bind(key.appId, "bigint")}`,
    `${entry}.data_source_id = ${statement.bind(key.id, "integer")}`,
  ];
  if (ids) conditions.push(`${entry}.id = ANY(${statement.bind(ids, "bigint[]")})`);
  if (scope.filter)
    conditions.push(
      compileWhere(scope.filter, createEntryDocumentSource(entry, UNRESTRICTED_ENTRY_SCOPE.canSeeColumn), statement),
    );
  conditions.push(compileWhere(where, createEntryDocumentSource(entry, scope.canSeeColumn), statement));
  return conditions.join(" AND ");
}

/** Up to this LIMIT of a query, `selectRowsThatFit` limits the size of the result. Above this LIMIT, the SQL limits the size. */
const CUT_AFTER_READ_MAX_ROWS = 16;

/**
 * Returns SQL that selects the first rows of `select`: at least one row, and further rows up to a total size of LIST_PAGE_MAX_BYTES. If
 * `limit` is at most CUT_AFTER_READ_MAX_ROWS, the SQL selects all rows: apply `selectRowsThatFit` to the result. The SQL converts `data` to
 * text after sorting, so that PostgreSQL sorts small rows.
 * @param select sorted SQL that selects `entryColumnsSql` and the columns in `more`; its LIMIT is `limit`
 */
export function limitBySizeSql(select: string, limit: number, more: readonly string[] = []): string {
  const columns = ["id", '"order"', "created_at", "updated_at", "data::text AS data", ...more].join(", ");
  const totalColumn = more.includes("found") ? ", count(*) OVER () AS found" : "";
  if (limit <= CUT_AFTER_READ_MAX_ROWS)
    return `SELECT ${columns} FROM (SELECT chosen.*${totalColumn} FROM (${select}) chosen) sized`;
  return `
    SELECT ${columns} FROM (
      SELECT chosen.*, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes, row_number() OVER () AS place${totalColumn} FROM (${select}) chosen) sized
     WHERE total_bytes <= ${LIST_PAGE_MAX_BYTES} OR place = 1 ORDER BY place`;
}

/**
 * Returns the first rows up to a total size of LIST_PAGE_MAX_BYTES, but at least one row. Needed for pages whose SQL does
 * not limit the size (see `limitBySizeSql`).
 */
export function selectRowsThatFit<Row extends { data: string }>(rows: Row[]): Row[] {
  let totalBytes = 0;
  const rowCount = rows.findIndex(({ data }, index) => {
    totalBytes += Buffer.byteLength(data);
    return index > 0 && totalBytes > LIST_PAGE_MAX_BYTES;
  });
  return rowCount < 0 ? rows : rows.slice(0, rowCount);
}

export const entryColumnsSql = (entry: string): string =>
  ["id", '"order"', "created_at", "updated_at", "data", "bytes"].map((column) => `${entry}.${column}`).join(", ");

/** Returns the JSON object `text` without its hidden columns. The other columns keep their text and order. */
function removeHiddenColumns(text: string, isShown: (column: string) => boolean): string {
  const members = [...readJsonFieldTexts(text)].flatMap(([column, value]) =>
    isShown(column) ? [`${JSON.stringify(column)}:${value}`] : [],
  );
  return `{${members.join(",")}}`;
}

export interface EntryRow {
  id: number;
  order: number;
  created_at: Date;
  updated_at: Date;
  data: string;
}

/**
 * Converts a row to the form that callers receive.
 * @param attributes columns to include; null for all columns that the scope includes
 */
export function rowToEntryView(
  row: EntryRow,
  dataSourceId: number,
  scope: VisibleEntryScope,
  attributes: ReadonlySet<string> | null,
): EntryView {
  // If the caller sees all columns, returns the JSON text unchanged, without parsing it.
  const isWhole = scope.canSeeColumn === UNRESTRICTED_ENTRY_SCOPE.canSeeColumn && attributes === null;
  const isShown = (column: string) => scope.canSeeColumn(column) && (attributes === null || attributes.has(column));
  return {
    id: row.id,
    dataSourceId,
    data: new JsonText(isWhole ? row.data : removeHiddenColumns(row.data, isShown)),
    order: row.order,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}
