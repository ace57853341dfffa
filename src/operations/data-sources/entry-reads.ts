/**
 * Reads entries: pages by offset or cursor, single entries, counts, distinct values and aggregates. Each function gets a scope: the entries
 * and columns that it may read. The functions do not check the rights of the request's caller.
 */
import { ActionError } from "../../errors.js";
import { ENTRY_MAX_BYTES, LIST_PAGE_MAX_BYTES } from "../../limits.js";
import { compileAggregate } from "../../rules/entry-query/aggregate.js";
import { AGGREGATE_FIELDS_MAX, requireList } from "../../rules/entry-query/checks.js";
import {
  type FindOptions,
  parseFindOptions,
  QUERY_SHAPE,
  type VisibleEntryScope,
} from "../../rules/entry-query/options.js";
import {
  afterPositionSql,
  encodeEntryCursor,
  orderBySql,
  parseOrder,
  type SortKey,
  sortKeySql,
  sortKeyTextSql,
  validateEntryCursor,
} from "../../rules/entry-query/order.js";
import { parseDocumentPath, valueAtPathSql } from "../../rules/entry-query/path.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import { readJsonFieldTexts } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";
import { EntryCounter } from "./entry-counts.js";
import { EntryJoins, type JoinedSourceAccess } from "./entry-joins.js";
import {
  createEntryDocumentSource,
  type DataSourceKey,
  type EntryRow,
  type EntryView,
  entryColumnsSql,
  entryConditionSql,
  limitBySizeSql,
  rowToEntryView,
  selectRowsThatFit,
} from "./entry-rows.js";
import { limitReadTime, type ReadRows } from "./read-pool.js";

/** Access of one read: the entries and columns that the read may return, and the data sources that it may join. */
export interface EntryReadAccess<Source extends DataSourceKey> extends JoinedSourceAccess<Source> {
  scope: VisibleEntryScope;
  /** If set, only entries with these IDs can be returned. */
  ids?: readonly number[];
  reserve?: ReserveResponseBytes;
}

export interface Pagination {
  total: number;
  limit: number;
  offset: number;
  /** True if `total` is an estimate, because an exact count would take too long. Missing if `total` is exact. */
  about?: true;
}

export interface CursorPagination {
  isFirstPage: boolean;
  isLastPage: boolean;
  /** Cursor with which a client requests the next page; null on the last page. */
  next: string | null;
  /** Cursor with which a client requests the previous page; null on the first page. */
  prev: string | null;
}

export interface FindEntriesResult {
  entries: (EntryView | JsonText)[];
  pagination?: Pagination;
  cursor?: CursorPagination;
}

const MAX_DISTINCT_VALUES = 10_000;

const SELECT_BY_ID = `
  SELECT id, "order", created_at, updated_at, data::text AS data FROM data_source_entry
   WHERE app_id = $1 AND data_source_id = $2 AND id = $3`;

type RowWithSortKeys = EntryRow & { keys?: string[] };

/** All SQL statements of one instance together have one time limit. */
class TimeLimitedEntryReader {
  private readonly counts = new EntryCounter(this.read);
  private readonly entryJoins = new EntryJoins(this.read);

  constructor(private readonly read: ReadRows) {}

  /** Reads the rows of a page. With a cursor, reads one more row than the limit; this row shows whether another page follows. */
  private async readPageRows<Source extends DataSourceKey>(
    key: Source,
    options: FindOptions,
    access: EntryReadAccess<Source>,
    keys: readonly SortKey[],
  ): Promise<{ rows: RowWithSortKeys[]; pages?: CursorPagination }> {
    const statement = new SqlStatement();
    const source = createEntryDocumentSource("e", access.scope.canSeeColumn);
    const where = [
      entryConditionSql(key, { scope: access.scope, where: options.where, ids: access.ids }, statement, "e"),
    ];
    where.push(...(await this.entryJoins.buildRequiredConditions(key, options.joins, access, statement)));
    const sql = keys.map((key) => sortKeySql(key, source, statement));
    const position = typeof options.cursor === "string" ? validateEntryCursor(options.cursor, keys, key.id) : null;
    const isReversed = position?.reversed ?? false;
    if (position) where.push(afterPositionSql(keys, sql, position.values, isReversed, statement));
    const usesCursor = options.cursor !== null;
    const columns = usesCursor
      ? `${entryColumnsSql("e")}, ARRAY[${sql.map(sortKeyTextSql).join(", ")}] AS keys`
      : entryColumnsSql("e");
    const limitPlaceholder = statement.bind(options.limit + (usesCursor ? 1 : 0), "bigint");
    const pageSql = `SELECT ${columns} FROM data_source_entry e WHERE ${where.join(" AND ")}
      ORDER BY ${orderBySql(keys, sql, isReversed)} LIMIT ${limitPlaceholder} OFFSET ${statement.bind(options.offset, "bigint")}`;
    refuseUnknownFields(options.receivedQuery, QUERY_SHAPE);
    const boundedPageSql = limitBySizeSql(pageSql, options.limit, usesCursor ? ["keys", "found"] : []);
    const rows = selectRowsThatFit(await this.read<RowWithSortKeys>(key.appId, boundedPageSql, statement.values));
    if (!usesCursor) return { rows };
    return toCursorPage(rows, options.limit, keys, key.id, position);
  }

  private async aggregateEntries<Source extends DataSourceKey>(
    key: Source,
    options: FindOptions,
    access: EntryReadAccess<Source>,
  ): Promise<FindEntriesResult> {
    const { scope } = access;
    const statement = new SqlStatement();
    const fromCondition = entryConditionSql(key, { scope, where: options.where, ids: access.ids }, statement, "e");
    const matchingEntriesSql = `SELECT e.doc AS d, e."order" AS n, e.id AS m FROM data_source_entry e WHERE ${fromCondition}`;
    const compiledAggregate = compileAggregate(options.aggregate, matchingEntriesSql, scope.canSeeColumn, statement);
    const limitSql = `LIMIT ${statement.bind(options.limit, "bigint")} OFFSET ${statement.bind(options.offset, "bigint")}`;
    const aggregatedSql = `SELECT d::text AS data, octet_length(d::text) AS bytes FROM (${compiledAggregate.sql}) made ORDER BY n, m ${limitSql}`;
    const sql = `SELECT data FROM (SELECT data, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes, row_number() OVER () AS place
      FROM (${aggregatedSql}) chosen) sized WHERE total_bytes <= ${LIST_PAGE_MAX_BYTES} OR place = 1 ORDER BY place`;
    refuseUnknownFields(options.receivedQuery, QUERY_SHAPE);
    const rows = await this.read<{ data: string }>(key.appId, sql, statement.values);
    const isShown = (column: string) => !compiledAggregate.areEntries || scope.canSeeColumn(column);
    return { entries: rows.map(({ data }) => new JsonText(orderMembers(data, compiledAggregate.keys, isShown))) };
  }

  private async readPagination<Source extends DataSourceKey>(
    key: Source,
    options: FindOptions,
    access: EntryReadAccess<Source>,
  ): Promise<Pagination> {
    const { limit, offset } = options;
    const buildJoinConditions = (statement: SqlStatement) =>
      this.entryJoins.buildRequiredConditions(key, options.joins, access, statement);
    const { total, about } = await this.counts.count(
      key,
      { scope: access.scope, where: options.where, ids: access.ids },
      buildJoinConditions,
    );
    return { total, limit, offset, ...(about ? { about } : {}) };
  }

  async find<Source extends DataSourceKey>(
    key: Source,
    query: unknown,
    access: EntryReadAccess<Source>,
  ): Promise<FindEntriesResult> {
    const options = parseFindOptions(query);
    if (options.aggregate !== null) return this.aggregateEntries(key, options, access);
    const keys = parseOrder(options.order, createEntryDocumentSource("e", access.scope.canSeeColumn));
    const { rows, pages } = await this.readPageRows(key, options, access, keys);
    await access.reserve?.(rows.reduce((sum, { data }) => sum + data.length, 0));
    const entries = rows.map((row) => rowToEntryView(row, key.id, access.scope, options.attributes));
    const joinedEntries = await this.entryJoins.readResults(key, entries, options.joins, access);
    for (const [at, entry] of entries.entries()) if (options.joins.length > 0) entry.joins = joinedEntries[at]!;
    const page: FindEntriesResult = { entries };
    if (pages) page.cursor = pages;
    const knownTotal = options.mayPaginate ? computeTotalFromPage(options, rows) : null;
    const { limit, offset } = options;
    if (knownTotal !== null) page.pagination = { total: knownTotal, limit, offset };
    else if (options.includePagination) page.pagination = await this.readPagination(key, options, access);
    return page;
  }

  async findOne<Source extends DataSourceKey>(key: Source, query: unknown, access: EntryReadAccess<Source>) {
    const { entries } = await this.find(key, { ...(query as object), limit: 1 }, access);
    return entries[0];
  }

  async findById<Source extends DataSourceKey>(
    key: Source,
    id: number,
    access: EntryReadAccess<Source>,
  ): Promise<EntryView> {
    const { scope } = access;
    if (scope.filter) {
      const { entries } = await this.find(key, { limit: 1 }, { ...access, ids: [id] });
      if (entries[0]) return entries[0] as EntryView;
    } else {
      const [row] = await this.read<EntryRow>(key.appId, SELECT_BY_ID, [key.appId, key.id, id], "entry-by-id");
      if (row) return rowToEntryView(row, key.id, scope, null);
    }
    throw new ActionError("ENTRY_NOT_FOUND");
  }

  count<Source extends DataSourceKey>(key: Source, where: unknown, scope: VisibleEntryScope) {
    return this.counts.count(key, { scope, where }, async () => []);
  }

  async distinct(key: DataSourceKey, columns: unknown, scope: VisibleEntryScope): Promise<Record<string, JsonText[]>> {
    const valuesByColumn: Record<string, JsonText[]> = {};
    for (const [at, column] of requireList(columns, "columns", AGGREGATE_FIELDS_MAX, 1).entries()) {
      const statement = new SqlStatement();
      const source = createEntryDocumentSource("e", scope.canSeeColumn);
      const value = valueAtPathSql(parseDocumentPath(column, `columns[${at}]`, source), source, statement);
      const fromCondition = entryConditionSql(key, { scope, where: null }, statement, "e");
      const distinctValuesSql = `SELECT value::text, octet_length(value::text) AS bytes
          FROM (SELECT DISTINCT ${value} AS value FROM data_source_entry e WHERE ${fromCondition}) visible
         WHERE value <> 'null' ORDER BY visible.value LIMIT ${MAX_DISTINCT_VALUES}`;
      const sql = `SELECT value FROM (SELECT value, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes FROM (${distinctValuesSql}) sorted) sized
          WHERE total_bytes <= ${LIST_PAGE_MAX_BYTES / AGGREGATE_FIELDS_MAX}`;
      const rows = await this.read<{ value: string }>(key.appId, sql, statement.values);
      valuesByColumn[String(column)] = rows.map((row) => new JsonText(row.value));
    }
    return valuesByColumn;
  }
}

/** Each call of a method has one time limit for all its SQL statements together (see `limitReadTime`). */
export class EntryReader {
  constructor(private readonly options: { read: ReadRows }) {}

  private createTimeLimitedReader(): TimeLimitedEntryReader {
    return new TimeLimitedEntryReader(limitReadTime(this.options.read));
  }

  /**
   * Returns a page of entries, or the result of an aggregate. The page has fewer than `limit` entries if `limit` entries would exceed 8 MB.
   * @throws ActionError REQUEST_INVALID with the path, the expected and the received value; errors of the functions in `access`
   */
  find<Source extends DataSourceKey>(key: Source, query: unknown, access: EntryReadAccess<Source>) {
    return this.createTimeLimitedReader().find(key, query, access);
  }

  findOne<Source extends DataSourceKey>(key: Source, query: unknown, access: EntryReadAccess<Source>) {
    return this.createTimeLimitedReader().findOne(key, query, access);
  }

  /** Returns the entry with this ID. @throws ENTRY_NOT_FOUND if the entry does not exist, or if the scope excludes it */
  findById<Source extends DataSourceKey>(key: Source, id: number, access: EntryReadAccess<Source>) {
    return this.createTimeLimitedReader().findById(key, id, access);
  }

  /** Counts the entries that match `where`. If an exact count is too expensive, returns an estimate, and `about` is true. */
  count(key: DataSourceKey, where: unknown, scope: VisibleEntryScope) {
    return this.createTimeLimitedReader().count(key, where, scope);
  }

  /**
   * Returns the sorted distinct values of each column, without null and missing values. Returns at most 10,000 values and about 160 KB per
   * column.
   */
  distinct(key: DataSourceKey, columns: unknown, scope: VisibleEntryScope) {
    return this.createTimeLimitedReader().distinct(key, columns, scope);
  }
}

/**
 * Returns the JSON object `text` with the members `keys` in this order, because PostgreSQL's jsonb changes the order. If `keys` is null,
 * keeps the order, and leaves out members for which `isShown` returns false.
 */
function orderMembers(text: string, keys: readonly string[] | null, isShown: (column: string) => boolean): string {
  const memberTextsByColumn = readJsonFieldTexts(text);
  const names = keys ?? [...memberTextsByColumn.keys()].filter(isShown);
  return `{${names.flatMap((name) => (memberTextsByColumn.has(name) ? [`${JSON.stringify(name)}:${memberTextsByColumn.get(name)}`] : [])).join(",")}}`;
}

/** Returns the total number of entries if the page shows that no entry follows, so that no count is needed; otherwise null. */
function computeTotalFromPage({ cursor, limit, offset }: FindOptions, rows: readonly EntryRow[]): number | null {
  if (cursor !== null || rows.length >= limit || (rows.length === 0 && offset > 0)) return null;
  const bytes = rows.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
  return bytes + ENTRY_MAX_BYTES <= LIST_PAGE_MAX_BYTES ? offset + rows.length : null;
}

/** Returns the rows in order, also if the page was read backwards, and the cursors of the next and the previous page. */
function toCursorPage(
  pageRows: RowWithSortKeys[],
  limit: number,
  sortKeys: readonly SortKey[],
  dataSourceId: number,
  position: { reversed: boolean } | null,
): { rows: RowWithSortKeys[]; pages: CursorPagination } {
  const isReversed = position?.reversed ?? false;
  // The row that was read in addition to `limit`, and rows beyond the first 8 MB, belong to the next page.
  const total = Number((pageRows[0] as { found?: number } | undefined)?.found ?? 0);
  const rows = pageRows.slice(0, limit);
  const hasMore = total > rows.length || pageRows.length > limit;
  if (isReversed) rows.reverse();
  const createCursor = (row: RowWithSortKeys | undefined, back: boolean) =>
    row ? encodeEntryCursor(sortKeys, dataSourceId, { values: row.keys!, reversed: back }) : null;
  const isFirstPage = isReversed ? !hasMore : position === null;
  const isLastPage = isReversed ? false : !hasMore;
  return {
    rows,
    pages: {
      isFirstPage,
      isLastPage,
      next: isLastPage ? null : createCursor(rows.at(-1), false),
      prev: isFirstPage ? null : createCursor(rows[0], true),
    },
  };
}
