/** Compiles `aggregate`, a list of stages, to nested SQL selects. Each select returns documents (`d`) and their sort keys `n`, `m`. */
import { isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import {
  AGGREGATE_FIELDS_MAX,
  AGGREGATE_STAGES_MAX,
  ORDER_COLUMNS_MAX,
  requireKnownOperators,
  requireList,
  requireQueryText,
  requireWholeNumber,
} from "./checks.js";
import {
  ACCUMULATOR_SQL,
  compileAccumulators,
  compileAggregateExpression,
  FIELD_NAME_MAX_CHARACTERS,
  requireFieldName,
  typeSortRankSql,
} from "./expressions.js";
import { jsonNullIfMissingSql, parseDocumentPath, type QueriedDocument, sortableValueSql } from "./path.js";
import type { SqlStatement } from "./statement.js";
import { compileWhere } from "./where.js";

export interface AggregateStageSql {
  /** Select with three columns: the document `d`, and its sort keys `n` and `m`. */
  sql: string;
  /** True if the documents are whole entries, so that they may contain columns that the caller must not see. */
  areEntries: boolean;
  /** Field names of the documents, in order; null for whole entries, which can have any fields. */
  keys: readonly string[] | null;
}

/** Maximum size in bytes of a document, and of all values that a stage collects with $push. Above it, the query fails. */
const COLLECTED_MAX_BYTES = 8 * 1024 * 1024;
/** Bytes that PostgreSQL needs for each collected value in addition to its content. */
const VALUE_OVERHEAD_BYTES = 100;
/** Returns a condition that fails with a division by zero if `bytes` is too large. The query then fails with REQUEST_INVALID. */
const failIfTooLargeSql = (bytes: string): string =>
  `1 / (CASE WHEN ${bytes} > ${COLLECTED_MAX_BYTES} THEN 0 ELSE 1 END) = 1`;

type Stage = (
  stageOptions: unknown,
  fieldPath: string,
  input: AggregateStageSql,
  canSeeColumn: QueriedDocument["canSeeColumn"],
  statement: SqlStatement,
) => AggregateStageSql;

const createDocumentSource = (
  { areEntries }: AggregateStageSql,
  canSeeColumn: QueriedDocument["canSeeColumn"],
): QueriedDocument => ({
  documentSql: "d",
  entryAlias: null,
  canSeeColumn: areEntries ? canSeeColumn : () => true,
});

/**
 * SQL that stops PostgreSQL from merging the selects of stages. Planning ten merged stages could exhaust the memory, and has no time limit.
 */
const OFFSET_BARRIER = "OFFSET 0";

const createFromClause = ({ sql }: AggregateStageSql, statement: SqlStatement): string =>
  `FROM (${sql}) ${statement.createAlias()}`;

const matchStage: Stage = (stageOptions, fieldPath, input, canSeeColumn, statement) => {
  if (!isObject(stageOptions)) refuseField(fieldPath, "an object with conditions on columns", stageOptions);
  const condition = compileWhere(stageOptions, createDocumentSource(input, canSeeColumn), statement, fieldPath);
  return { ...input, sql: `SELECT d, n, m ${createFromClause(input, statement)} WHERE ${condition}` };
};

const sortStage: Stage = (stageOptions, fieldPath, input, canSeeColumn, statement) => {
  if (!isObject(stageOptions)) refuseField(fieldPath, "an object with 1 or -1 for each column", stageOptions);
  const columns = Object.entries(stageOptions);
  if (columns.length === 0 || columns.length > ORDER_COLUMNS_MAX)
    refuseField(fieldPath, `an object with 1 to ${ORDER_COLUMNS_MAX} columns`, stageOptions);
  const order = columns.flatMap(([column, direction]) => {
    const innerPath = `${fieldPath}.${column}`;
    if (direction !== 1 && direction !== -1) refuseField(innerPath, "1 or -1", direction);
    const source = createDocumentSource(input, canSeeColumn);
    const key = sortableValueSql(parseDocumentPath(column, innerPath, source), source, statement);
    const directionSql = direction === 1 ? "ASC" : "DESC";
    return [`${typeSortRankSql(key)} ${directionSql}`, `${key} ${directionSql}`];
  });
  const positionSql = `row_number() OVER (ORDER BY ${order.join(", ")}, n, m)`;
  return {
    ...input,
    sql: `SELECT d, ${positionSql}::float8 AS n, 0::bigint AS m ${createFromClause(input, statement)}`,
  };
};

const limitStage: Stage = (stageOptions, fieldPath, input, _canSeeColumn, statement) => {
  const limitSql = statement.bind(requireWholeNumber(stageOptions, fieldPath, 1, 1_000_000), "integer");
  return { ...input, sql: `SELECT d, n, m ${createFromClause(input, statement)} ORDER BY n, m LIMIT ${limitSql}` };
};

const countStage: Stage = (stageOptions, fieldPath, input, _canSeeColumn, statement) => {
  const name = requireFieldName(requireQueryText(stageOptions, fieldPath, FIELD_NAME_MAX_CHARACTERS), fieldPath);
  const d = `jsonb_build_object(${statement.bind(name, "text")}, count(*))`;
  const sql = `SELECT ${d} AS d, 0::float8 AS n, 0::bigint AS m ${createFromClause(input, statement)}`;
  return { sql, areEntries: false, keys: [name] };
};

/** Returns SQL for an object of the members that have a value. Checks the size first: each stage could make objects 50 times as large. */
function buildObjectSql(members: readonly [name: string, value: string][], statement: SqlStatement): string {
  const rows = members.map(([name, value]) => `(${statement.bind(name, "text")}, ${value})`).join(", ");
  const [x, y] = [statement.createAlias(), statement.createAlias()];
  const withSizeCheck = `SELECT k, v, sum(pg_column_size(v)) OVER () AS total_bytes FROM (VALUES ${rows}) ${x}(k, v) WHERE v IS NOT NULL`;
  return `(SELECT COALESCE(jsonb_object_agg(k, v), '{}') FROM (${withSizeCheck}) ${y} WHERE ${failIfTooLargeSql("total_bytes")})`;
}

const isExcluded = (value: unknown): boolean => value === 0 || value === false;
const isIncluded = (value: unknown): boolean => typeof value === "number" || value === true;

const projectStage: Stage = (stageOptions, fieldPath, input, canSeeColumn, statement) => {
  if (!isObject(stageOptions))
    refuseField(fieldPath, "an object with an expression, 1 or 0 for each field", stageOptions);
  const entries = Object.entries(stageOptions);
  if (entries.length === 0 || entries.length > AGGREGATE_FIELDS_MAX)
    refuseField(fieldPath, `an object with 1 to ${AGGREGATE_FIELDS_MAX} fields`, stageOptions);
  for (const [name] of entries) requireFieldName(name, `${fieldPath}.${name}`);
  if (entries.every(([, value]) => isExcluded(value))) {
    const omittedNamesSql = statement.bind(
      entries.map(([name]) => name),
      "text[]",
    );
    return {
      ...input,
      sql: `SELECT d - ${omittedNamesSql} AS d, n, m ${createFromClause(input, statement)} ${OFFSET_BARRIER}`,
    };
  }
  const computedFields = entries.filter(([name, value]) => !(name === "_id" && isExcluded(value)));
  const excludedField = computedFields.find(([, value]) => isExcluded(value));
  if (excludedField)
    refuseField(
      `${fieldPath}.${excludedField[0]}`,
      "1 or an expression; if other fields are included, only _id can be 0",
      excludedField[1],
    );
  const source = createDocumentSource(input, canSeeColumn);
  const members = computedFields.map(([name, value]): [string, string] => [
    name,
    compileAggregateExpression(
      isIncluded(value) ? `$${name.replaceAll(".", "\\.")}` : value,
      `${fieldPath}.${name}`,
      source,
      statement,
    ),
  ]);
  if (!entries.some(([name]) => name === "_id"))
    members.unshift(["_id", compileAggregateExpression("$_id", fieldPath, source, statement)]);
  const sql = `SELECT ${buildObjectSql(members, statement)} AS d, n, m ${createFromClause(input, statement)} ${OFFSET_BARRIER}`;
  return { sql, areEntries: false, keys: members.map(([name]) => name) };
};

/** Returns SQL for the key by which $group groups documents: a value, or an object with several values. */
function compileGroupKey(id: unknown, fieldPath: string, source: QueriedDocument, statement: SqlStatement): string {
  const isOperator = isObject(id) && Object.keys(id).some((key) => key.startsWith("$"));
  if (!isObject(id) || isOperator)
    return jsonNullIfMissingSql(compileAggregateExpression(id ?? null, fieldPath, source, statement));
  const parts = Object.entries(id);
  if (parts.length === 0 || parts.length > AGGREGATE_FIELDS_MAX)
    refuseField(fieldPath, `an object with 1 to ${AGGREGATE_FIELDS_MAX} fields`, id);
  const members = parts.map(([name, value]): [string, string] => [
    requireFieldName(name, `${fieldPath}.${name}`),
    compileAggregateExpression(value, `${fieldPath}.${name}`, source, statement),
  ]);
  return buildObjectSql(members, statement);
}

const groupStage: Stage = (stageOptions, fieldPath, input, canSeeColumn, statement) => {
  if (!isObject(stageOptions) || !("_id" in stageOptions)) refuseField(fieldPath, "an object with _id", stageOptions);
  const source = createDocumentSource(input, canSeeColumn);
  const key = compileGroupKey(stageOptions["_id"], `${fieldPath}._id`, source, statement);
  const accumulators = compileAccumulators(stageOptions, fieldPath, source, statement);
  const values = accumulators.map(({ value }, index) => `${value} AS v${index}`);
  const innerSelect = `SELECT ${[`${key} AS g`, "n", "m", ...values].join(", ")} ${createFromClause(input, statement)} ${OFFSET_BARRIER}`;
  const firstRowColumnSql = accumulators.some(({ operator }) => operator === "$first")
    ? ", row_number() OVER (PARTITION BY g ORDER BY n, m) = 1 AS f"
    : "";
  const pushedSizes = accumulators.flatMap(({ operator }, index) =>
    operator === "$push" ? [`COALESCE(octet_length(v${index}::text), 0) + ${VALUE_OVERHEAD_BYTES}`] : [],
  );
  const boundedSum =
    pushedSizes.length === 0 ? "" : `, sum(${pushedSizes.join(" + ")}) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes`;
  const sizeGuard = pushedSizes.length === 0 ? "" : ` WHERE ${failIfTooLargeSql("total_bytes")}`;
  const columnSizesSql = ["g", ...accumulators.map((_, index) => `v${index}`)].map(
    (name) => `COALESCE(pg_column_size(${name}), 0)`,
  );
  const rows = `SELECT *${firstRowColumnSql}${boundedSum} FROM (${innerSelect}) ${statement.createAlias()} WHERE ${failIfTooLargeSql(columnSizesSql.join(" + "))}`;
  const members = accumulators.map(({ name, operator }, index): [string, string] => [
    name,
    ACCUMULATOR_SQL[operator]!(`v${index}`, "f"),
  ]);
  const columns = members.map(([, sql], index) => `, ${sql} AS a${index}`).join("");
  const groupedRows = `SELECT g, min(n) AS n, min(m) AS m${columns} FROM (${rows}) ${statement.createAlias()}${sizeGuard} GROUP BY g`;
  const d = buildObjectSql(
    [["_id", "g"], ...members.map(([name], index): [string, string] => [name, `a${index}`])],
    statement,
  );
  return {
    sql: `SELECT ${d} AS d, n, m FROM (${groupedRows}) ${statement.createAlias()} ${OFFSET_BARRIER}`,
    areEntries: false,
    keys: ["_id", ...members.map(([name]) => name)],
  };
};

const STAGES: Readonly<Record<string, Stage>> = {
  $match: matchStage,
  $project: projectStage,
  $group: groupStage,
  $sort: sortStage,
  $limit: limitStage,
  $count: countStage,
};

/**
 * Compiles the stages of `aggregate` in order.
 * @param entries SQL of a select with three columns: the entry's document `d`, and its sort keys `n` and `m`
 * @throws ActionError REQUEST_INVALID with the path of the invalid stage
 */
export function compileAggregate(
  aggregate: unknown,
  entries: string,
  canSeeColumn: QueriedDocument["canSeeColumn"],
  statement: SqlStatement,
): AggregateStageSql {
  const stages = requireList(aggregate, "aggregate", AGGREGATE_STAGES_MAX, 1);
  return stages.reduce<AggregateStageSql>(
    (input, stage, at) => {
      const stagePath = `aggregate[${at}]`;
      const stageObject = requireKnownOperators(stage, stagePath, Object.keys(STAGES));
      const [name, ...more] = Object.keys(stageObject);
      if (name === undefined || more.length > 0)
        refuseField(stagePath, 'an object with one stage, such as {"$limit": 10}', stage);
      return STAGES[name]!(stageObject[name], `${stagePath}.${name}`, input, canSeeColumn, statement);
    },
    { sql: entries, areEntries: true, keys: null },
  );
}
