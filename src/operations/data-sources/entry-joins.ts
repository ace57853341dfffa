/** Adds entries of the app's data sources (joins) to a page of query results. Each join needs two SQL statements for the whole page. */
import { ActionError } from "../../errors.js";
import { throwQueryLimitError } from "../../rules/entry-query/checks.js";
import { jsonTextSql, jsonTypeSql } from "../../rules/entry-query/operators.js";
import type { JoinOptions, VisibleEntryScope } from "../../rules/entry-query/options.js";
import { orderBySql, parseOrder, sortKeySql } from "../../rules/entry-query/order.js";
import { parseDocumentPath, sortableValueSql, valueAtPathSql } from "../../rules/entry-query/path.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import { JsonText } from "../../rules/json-text.js";
import {
  createEntryDocumentSource,
  type DataSourceKey,
  type EntryRow,
  type EntryView,
  entryColumnsSql,
  entryConditionSql,
  limitBySizeSql,
  rowToEntryView,
} from "./entry-rows.js";
import type { ReadRows } from "./read-pool.js";

export interface JoinedSourceAccess<Source extends DataSourceKey> {
  findJoinedSource(dataSource: JoinOptions["dataSource"]): Promise<Source>;
  resolveScope(source: Source, where: unknown): VisibleEntryScope | Promise<VisibleEntryScope>;
}

interface ReadableJoin {
  join: JoinOptions;
  key: DataSourceKey;
  scope: VisibleEntryScope;
}

type JoinedRow = EntryRow & { at: number };

/**
 * The values of the join columns, as texts, for each entry of a result page. Null if a value is not a text, number or boolean: nothing is
 * joined then.
 */
type JoinValues = readonly (readonly string[] | null)[];

const isScalarSql = (sql: string): string => `${jsonTypeSql(sql)} IN ('string', 'number', 'boolean')`;

const ENTRY_ID_PATTERN = /^[1-9]\d{0,14}$/;

/** Matches every number that an entry can have, in the form in which PostgreSQL writes it: without an exponent. */
const DECIMAL_PATTERN = /^-?(?:0|[1-9]\d{0,308})(?:\.\d{1,340})?$/;

/** Returns, as JSON texts, all values that a join treats as equal to `text`. For example, the number `5` equals the text `"5"`. */
function listEqualJsonValues(text: string): string[] {
  const jsonText = JSON.stringify(text);
  const isNumberOrBoolean = text === "true" || text === "false" || (DECIMAL_PATTERN.test(text) && text !== "-0");
  return isNumberOrBoolean ? [jsonText, text] : [jsonText];
}

async function resolveJoin<Source extends DataSourceKey>(
  key: DataSourceKey,
  join: JoinOptions,
  sources: JoinedSourceAccess<Source>,
): Promise<ReadableJoin> {
  const source = await sources.findJoinedSource(join.dataSource);
  // Without this check, a join with a data source of another app would return nothing instead of an error.
  if (source.appId !== key.appId) throw new ActionError("DATA_SOURCE_NOT_FOUND");
  return { join, key: source, scope: await sources.resolveScope(source, join.where) };
}

/** Builds FROM and WHERE for the joined entries. `k.at` identifies the entry of the result page: its index in `joinValues`. */
function matchingEntriesSql(
  { join, key, scope }: ReadableJoin,
  joinValues: JoinValues,
  statement: SqlStatement,
): string {
  const source = createEntryDocumentSource("j", scope.canSeeColumn);
  const fieldPath = `join.${join.name}`;
  const condition = entryConditionSql(key, { scope, where: join.where }, statement, "j");
  const paths = join.on.map(([left, right]) => parseDocumentPath(right, `${fieldPath}.on.${left}`, source, true));
  const values = paths.map((path) => sortableValueSql(path, source, statement));
  const pairConditions = values.map((value, pair) => {
    const texts = [...new Set(joinValues.flatMap((entryTexts) => (entryTexts ? [entryTexts[pair]!] : [])))];
    // Compares IDs as numbers and not as texts, so that PostgreSQL can use the primary key.
    if (paths[pair]!.entryField === "id")
      return `j.id = ANY(${statement.bind(
        texts.filter((text) => ENTRY_ID_PATTERN.test(text)),
        "bigint[]",
      )})`;
    const all = new Set(texts.flatMap(listEqualJsonValues));
    return `${value} = ANY(${statement.bind([...all], "jsonb[]")})`;
  });
  const completeValues = joinValues.flatMap((entryTexts, index) =>
    entryTexts ? [{ at: index, texts: entryTexts }] : [],
  );
  const columns = [
    statement.bind(
      completeValues.map(({ at }) => at),
      "bigint[]",
    ),
  ];
  for (const pair of join.on.keys())
    columns.push(
      statement.bind(
        completeValues.map(({ texts }) => texts[pair]!),
        "text[]",
      ),
    );
  const names = join.on.map((_, pair) => `t${pair}`);
  const equalConditions = values.map((value, pair) => `${jsonTextSql(value)} = k.t${pair}`);
  return `FROM unnest(${columns.join(", ")}) k(at, ${names.join(", ")})
      JOIN data_source_entry j ON ${equalConditions.join(" AND ")} WHERE ${[condition, ...pairConditions].join(" AND ")}`;
}

export class EntryJoins {
  constructor(private readonly read: ReadRows) {}

  private async readJoinValues(
    key: DataSourceKey,
    entries: readonly EntryView[],
    join: JoinOptions,
    scope: VisibleEntryScope,
  ): Promise<JoinValues> {
    const statement = new SqlStatement(
      entries.map(({ id }) => id),
      key.appId,
    );
    const source = createEntryDocumentSource("e", scope.canSeeColumn);
    const texts = join.on.map(([left]) => {
      const value = valueAtPathSql(parseDocumentPath(left, `join.${join.name}.on`, source, true), source, statement);
      return `CASE WHEN ${isScalarSql(value)} THEN ${jsonTextSql(value)} END`;
    });
    const sql = `SELECT e.id, ARRAY[${texts.join(", ")}] AS texts FROM data_source_entry e WHERE e.app_id = $2 AND e.id = ANY($1::bigint[])`;
    const rows = await this.read<{ id: number; texts: (string | null)[] }>(key.appId, sql, statement.values);
    const byId = new Map(rows.map(({ id, texts }) => [id, texts]));
    return entries.map(({ id }) => {
      const entryValues = byId.get(id);
      return entryValues && !entryValues.includes(null) ? (entryValues as string[]) : null;
    });
  }

  private async readJoinedEntries(joinedSource: ReadableJoin, joinValues: JoinValues): Promise<unknown[]> {
    const { join, key, scope } = joinedSource;
    const statement = new SqlStatement();
    const fromSql = matchingEntriesSql(joinedSource, joinValues, statement);
    const source = createEntryDocumentSource("j", scope.canSeeColumn);
    const order = parseOrder(join.order, source, `join.${join.name}.order`);
    const orderSql = orderBySql(
      order,
      order.map((key) => sortKeySql(key, source, statement)),
    );
    const numberedRowsSql = `SELECT k.at, ${entryColumnsSql("j")}, row_number() OVER (PARTITION BY k.at ORDER BY ${orderSql}) AS nth ${fromSql}`;
    const limitedRowsSql = `SELECT * FROM (${numberedRowsSql}) found WHERE nth <= ${statement.bind(join.limit, "bigint")} ORDER BY at, nth`;
    const rows = await this.read<JoinedRow & { found: number }>(
      key.appId,
      limitBySizeSql(limitedRowsSql, Number.POSITIVE_INFINITY, ["at", "found"]),
      statement.values,
    );
    if (rows.length > 0 && rows[0]!.found > rows.length)
      throwQueryLimitError(
        `the joined entries of join.${join.name} exceed 8 MB on this page; ` +
          `request fewer entries, or set a smaller join.${join.name}.limit`,
      );
    const joined: unknown[][] = joinValues.map(() => []);
    for (const row of rows) joined[row.at]!.push(rowToEntryView(row, key.id, scope, join.attributes));
    return joined;
  }

  private async computeJoinAggregates(joinedSource: ReadableJoin, joinValues: JoinValues): Promise<unknown[]> {
    const { join, key, scope } = joinedSource;
    const statement = new SqlStatement();
    const fromSql = matchingEntriesSql(joinedSource, joinValues, statement);
    const { resultForm } = join;
    let aggregateSql = "count(*)";
    if (resultForm.as === "sum") {
      const source = createEntryDocumentSource("j", scope.canSeeColumn);
      const value = valueAtPathSql(
        parseDocumentPath(resultForm.column, `join.${join.name}.sum`, source),
        source,
        statement,
      );
      aggregateSql = `COALESCE(sum(CASE WHEN ${jsonTypeSql(value)} = 'number' THEN ${jsonTextSql(value)}::numeric END), 0)`;
    }
    const sql = `SELECT k.at, (${aggregateSql})::text AS aggregate ${fromSql} GROUP BY k.at`;
    const rows = await this.read<{ at: number; aggregate: string }>(key.appId, sql, statement.values);
    const aggregates = new Map(rows.map(({ at, aggregate }) => [at, aggregate]));
    if (resultForm.as === "has") return joinValues.map((_, index) => aggregates.has(index));
    return joinValues.map((_, index) => new JsonText(aggregates.get(index) ?? "0"));
  }

  /** Returns an SQL condition for each join with `required`. The condition is true for an entry with at least one joined entry. */
  async buildRequiredConditions<Source extends DataSourceKey>(
    key: DataSourceKey,
    joins: readonly JoinOptions[],
    sources: JoinedSourceAccess<Source> & { scope: VisibleEntryScope },
    statement: SqlStatement,
  ): Promise<string[]> {
    const conditions: string[] = [];
    for (const join of joins.filter((requiredJoin) => requiredJoin.required)) {
      const joinedSource = await resolveJoin(key, join, sources);
      const [left, right] = [
        createEntryDocumentSource("e", sources.scope.canSeeColumn),
        createEntryDocumentSource("j", joinedSource.scope.canSeeColumn),
      ];
      const equalConditions = join.on.map(([leftColumn, rightColumn]) => {
        const fieldPath = `join.${join.name}.on`;
        const leftValue = valueAtPathSql(parseDocumentPath(leftColumn, fieldPath, left, true), left, statement);
        const rightValue = valueAtPathSql(parseDocumentPath(rightColumn, fieldPath, right, true), right, statement);
        return `${isScalarSql(leftValue)} AND ${isScalarSql(rightValue)} AND ${jsonTextSql(leftValue)} = ${jsonTextSql(rightValue)}`;
      });
      const condition = entryConditionSql(
        joinedSource.key,
        { scope: joinedSource.scope, where: join.where },
        statement,
        "j",
      );
      conditions.push(
        `EXISTS (SELECT FROM data_source_entry j WHERE ${condition} AND ${equalConditions.join(" AND ")})`,
      );
    }
    return conditions;
  }

  /** Returns for each entry of the page the results of all joins: joined entries, a boolean, a count or a sum. */
  async readResults<Source extends DataSourceKey>(
    key: DataSourceKey,
    entries: readonly EntryView[],
    joins: readonly JoinOptions[],
    sources: JoinedSourceAccess<Source> & { scope: VisibleEntryScope },
  ): Promise<Record<string, unknown>[]> {
    const results: Record<string, unknown>[] = entries.map(() => ({}));
    for (const join of joins) {
      const joinedSource = await resolveJoin(key, join, sources);
      const joinValues = await this.readJoinValues(key, entries, join, sources.scope);
      const values =
        join.resultForm.as === "entries"
          ? await this.readJoinedEntries(joinedSource, joinValues)
          : await this.computeJoinAggregates(joinedSource, joinValues);
      for (const [at, value] of values.entries()) results[at]![join.name] = value;
    }
    return results;
  }
}
