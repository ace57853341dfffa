/**
 * Compiles `aggregate`, a list of stages, to nested SQL selects. The select of each stage returns documents (column `d`)
 * and the keys by which they are sorted (columns `n` and `m`). The first stage gets the documents of the entries.
 */
import { isObject } from "../described.js";
import { refuseField } from "../fields.js";
import { ACCUMULATOR_SQL, compileExpression, fieldName, gatherValues, NAME_MAX, typeRankSql } from "./expressions.js";
import { checkList, checkText, FIELDS_MAX, ORDER_MAX, readOperators, STAGES_MAX, wholeNumber } from "./judge.js";
import { jsonNullIfMissing, keyAt, parsePath, type Source } from "./path.js";
import type { Statement } from "./statement.js";
import { compileWhere } from "./where.js";

/** Result of a stage. */
export interface DocumentRows {
  /** SQL of a select with the columns d, n and m. */
  sql: string;
  /** True while `d` is the document of an entry, which may have hidden columns. */
  areEntries: boolean;
  /** Field names of the documents, in order; null if the documents are still those of the entries. */
  keys: readonly string[] | null;
}

/** Maximum bytes that one $push collects, and maximum bytes of one document. The query fails if a value is larger. */
const GATHERED_MAX_BYTES = 8 * 1024 * 1024;
/** Bytes that PostgreSQL needs for one collected value in addition to its content. */
const VALUE_BYTES = 100;
/** Returns SQL that divides by zero if `bytes` is too large, so that the query fails. PostgreSQL itself has no such limit. */
const failIfTooLarge = (bytes: string): string =>
  `1 / (CASE WHEN ${bytes} > ${GATHERED_MAX_BYTES} THEN 0 ELSE 1 END) = 1`;

type Stage = (
  stageOptions: unknown,
  fieldPath: string,
  input: DocumentRows,
  canSee: Source["sees"],
  statement: Statement,
) => DocumentRows;

const documentSource = ({ areEntries }: DocumentRows, canSee: Source["sees"]): Source => ({
  doc: "d",
  entry: null,
  sees: areEntries ? canSee : () => true,
});

/**
 * `OFFSET 0` prevents PostgreSQL from merging stages. Otherwise it would copy a stage's expressions to each use in the
 * next stage: ten stages of fifty names exhaust any machine during planning, which ignores the timeout.
 */
const OFFSET_BARRIER = "OFFSET 0";

const fromDocumentRows = ({ sql }: DocumentRows, statement: Statement): string =>
  `FROM (${sql}) ${statement.uniqueName()}`;

const matchStage: Stage = (stageOptions, fieldPath, input, canSee, statement) => {
  if (!isObject(stageOptions)) refuseField(fieldPath, "an object with conditions on columns", stageOptions);
  const condition = compileWhere(stageOptions, documentSource(input, canSee), statement, fieldPath);
  return { ...input, sql: `SELECT d, n, m ${fromDocumentRows(input, statement)} WHERE ${condition}` };
};

const sortStage: Stage = (stageOptions, fieldPath, input, canSee, statement) => {
  if (!isObject(stageOptions)) refuseField(fieldPath, "an object with 1 or -1 for each column", stageOptions);
  const columns = Object.entries(stageOptions);
  if (columns.length === 0 || columns.length > ORDER_MAX)
    refuseField(fieldPath, `an object with 1 to ${ORDER_MAX} columns`, stageOptions);
  const order = columns.flatMap(([column, direction]) => {
    const innerPath = `${fieldPath}.${column}`;
    if (direction !== 1 && direction !== -1) refuseField(innerPath, "1 or -1", direction);
    const at = documentSource(input, canSee);
    const key = keyAt(parsePath(column, innerPath, at), at, statement);
    const directionSql = direction === 1 ? "ASC" : "DESC";
    return [`${typeRankSql(key)} ${directionSql}`, `${key} ${directionSql}`];
  });
  const place_ = `row_number() OVER (ORDER BY ${order.join(", ")}, n, m)`;
  return { ...input, sql: `SELECT d, ${place_}::float8 AS n, 0::bigint AS m ${fromDocumentRows(input, statement)}` };
};

const limitStage: Stage = (stageOptions, fieldPath, input, _canSee, statement) => {
  const boundNumber = statement.bind(wholeNumber(stageOptions, fieldPath, 1, 1_000_000), "integer");
  return { ...input, sql: `SELECT d, n, m ${fromDocumentRows(input, statement)} ORDER BY n, m LIMIT ${boundNumber}` };
};

const countStage: Stage = (stageOptions, fieldPath, input, _canSee, statement) => {
  const name = fieldName(checkText(stageOptions, fieldPath, NAME_MAX), fieldPath);
  const d = `jsonb_build_object(${statement.bind(name, "text")}, count(*))`;
  const sql = `SELECT ${d} AS d, 0::float8 AS n, 0::bigint AS m ${fromDocumentRows(input, statement)}`;
  return { sql, areEntries: false, keys: [name] };
};

/**
 * Returns SQL that builds an object from the members that have a value. It checks the size first, because each stage
 * could make the object fifty times as large.
 */
function buildObject(members: readonly [name: string, value: string][], statement: Statement): string {
  const rows = members.map(([name, value]) => `(${statement.bind(name, "text")}, ${value})`).join(", ");
  const [x, y] = [statement.uniqueName(), statement.uniqueName()];
  const withSizeCheck = `SELECT k, v, sum(pg_column_size(v)) OVER () AS total_bytes FROM (VALUES ${rows}) ${x}(k, v) WHERE v IS NOT NULL`;
  return `(SELECT COALESCE(jsonb_object_agg(k, v), '{}') FROM (${withSizeCheck}) ${y} WHERE ${failIfTooLarge("total_bytes")})`;
}

const isExcluded = (value: unknown): boolean => value === 0 || value === false;
const isIncluded = (value: unknown): boolean => typeof value === "number" || value === true;

const projectStage: Stage = (stageOptions, fieldPath, input, canSee, statement) => {
  if (!isObject(stageOptions))
    refuseField(fieldPath, "an object with an expression, 1 or 0 for each field", stageOptions);
  const entries = Object.entries(stageOptions);
  if (entries.length === 0 || entries.length > FIELDS_MAX)
    refuseField(fieldPath, `an object with 1 to ${FIELDS_MAX} fields`, stageOptions);
  for (const [name] of entries) fieldName(name, `${fieldPath}.${name}`);
  if (entries.every(([, value]) => isExcluded(value))) {
    const objectBase = statement.bind(
      entries.map(([name]) => name),
      "text[]",
    );
    return {
      ...input,
      sql: `SELECT d - ${objectBase} AS d, n, m ${fromDocumentRows(input, statement)} ${OFFSET_BARRIER}`,
    };
  }
  const computedFields = entries.filter(([name, value]) => !(name === "_id" && isExcluded(value)));
  const off = computedFields.find(([, value]) => isExcluded(value));
  if (off)
    refuseField(
      `${fieldPath}.${off[0]}`,
      "1 or an expression; if other fields are included, only _id can be 0",
      off[1],
    );
  const at = documentSource(input, canSee);
  const members = computedFields.map(([name, value]): [string, string] => [
    name,
    compileExpression(
      isIncluded(value) ? `$${name.replaceAll(".", "\\.")}` : value,
      `${fieldPath}.${name}`,
      at,
      statement,
    ),
  ]);
  if (!entries.some(([name]) => name === "_id"))
    members.unshift(["_id", compileExpression("$_id", fieldPath, at, statement)]);
  const sql = `SELECT ${buildObject(members, statement)} AS d, n, m ${fromDocumentRows(input, statement)} ${OFFSET_BARRIER}`;
  return { sql, areEntries: false, keys: members.map(([name]) => name) };
};

/** Returns SQL for the key of a group: a value, or an object with several values. */
function groupKey(id: unknown, fieldPath: string, at: Source, statement: Statement): string {
  const isOperator = isObject(id) && Object.keys(id).some((key) => key.startsWith("$"));
  if (!isObject(id) || isOperator) return jsonNullIfMissing(compileExpression(id ?? null, fieldPath, at, statement));
  const parts = Object.entries(id);
  if (parts.length === 0 || parts.length > FIELDS_MAX)
    refuseField(fieldPath, `an object with 1 to ${FIELDS_MAX} fields`, id);
  const members = parts.map(([name, value]): [string, string] => [
    fieldName(name, `${fieldPath}.${name}`),
    compileExpression(value, `${fieldPath}.${name}`, at, statement),
  ]);
  return buildObject(members, statement);
}

const groupStage: Stage = (stageOptions, fieldPath, input, canSee, statement) => {
  if (!isObject(stageOptions) || !("_id" in stageOptions)) refuseField(fieldPath, "an object with _id", stageOptions);
  const at = documentSource(input, canSee);
  const key = groupKey(stageOptions["_id"], `${fieldPath}._id`, at, statement);
  const parts = gatherValues(stageOptions, fieldPath, at, statement);
  const values = parts.map(({ value }, index) => `${value} AS v${index}`);
  const innerSelect = `SELECT ${[`${key} AS g`, "n", "m", ...values].join(", ")} ${fromDocumentRows(input, statement)} ${OFFSET_BARRIER}`;
  const first = parts.some(({ operator }) => operator === "$first")
    ? ", row_number() OVER (PARTITION BY g ORDER BY n, m) = 1 AS f"
    : "";
  const pushedSizes = parts.flatMap(({ operator }, index) =>
    operator === "$push" ? [`COALESCE(octet_length(v${index}::text), 0) + ${VALUE_BYTES}`] : [],
  );
  const boundedSum =
    pushedSizes.length === 0 ? "" : `, sum(${pushedSizes.join(" + ")}) OVER (ROWS UNBOUNDED PRECEDING) AS total_bytes`;
  const sizeGuard = pushedSizes.length === 0 ? "" : ` WHERE ${failIfTooLarge("total_bytes")}`;
  const rowWidth = ["g", ...parts.map((_, index) => `v${index}`)].map((name) => `COALESCE(pg_column_size(${name}), 0)`);
  const rows = `SELECT *${first}${boundedSum} FROM (${innerSelect}) ${statement.uniqueName()} WHERE ${failIfTooLarge(rowWidth.join(" + "))}`;
  const members = parts.map(({ name, operator }, index): [string, string] => [
    name,
    ACCUMULATOR_SQL[operator]!(`v${index}`, "f"),
  ]);
  const columns = members.map(([, sql], index) => `, ${sql} AS a${index}`).join("");
  const groupedRows = `SELECT g, min(n) AS n, min(m) AS m${columns} FROM (${rows}) ${statement.uniqueName()}${sizeGuard} GROUP BY g`;
  const d = buildObject(
    [["_id", "g"], ...members.map(([name], index): [string, string] => [name, `a${index}`])],
    statement,
  );
  return {
    sql: `SELECT ${d} AS d, n, m FROM (${groupedRows}) ${statement.uniqueName()} ${OFFSET_BARRIER}`,
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
 * @param entries SQL of a select with the columns d, n and m
 * @throws ActionError REQUEST_INVALID with the path of the invalid stage
 */
export function compileAggregate(
  aggregate: unknown,
  entries: string,
  canSee: Source["sees"],
  statement: Statement,
): DocumentRows {
  const stages = checkList(aggregate, "aggregate", STAGES_MAX, 1);
  return stages.reduce<DocumentRows>(
    (input, stage, at) => {
      const place = `aggregate[${at}]`;
      const spec = readOperators(stage, place, Object.keys(STAGES));
      const [name, ...more] = Object.keys(spec);
      if (name === undefined || more.length > 0)
        refuseField(place, 'an object with one stage, such as {"$limit": 10}', stage);
      return STAGES[name]!(spec[name], `${place}.${name}`, input, canSee, statement);
    },
    { sql: entries, areEntries: true, keys: null },
  );
}
