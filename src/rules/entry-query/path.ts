/**
 * Parses paths of columns (`Address.street`, `items.0.price`), and builds SQL that reads their values. Queries must read documents only
 * through this file, which hides the columns that the caller cannot see.
 */
import { refuseField } from "../fields.js";
import { COLUMN_PATH_MAX_CHARACTERS, COLUMN_PATH_MAX_SEGMENTS, requireQueryText } from "./checks.js";
import type { SqlStatement } from "./statement.js";

export const ENTRY_FIELD_NAMES = ["id", "createdAt", "updatedAt", "order"] as const;
export type EntryField = (typeof ENTRY_FIELD_NAMES)[number];

export type Path = { entryField: EntryField } | { entryField: null; segments: readonly string[] };

/** JSON document from which queries read values, described in SQL. */
export interface QueriedDocument {
  /** SQL of the document: a jsonb value that is never NULL. */
  documentSql: string;
  /** SQL alias of the entry's table row; null if the document is no entry, but the result of a stage of `aggregate`. */
  entryAlias: string | null;
  /** Returns true if the caller can see this top-level column. */
  canSeeColumn: (column: string) => boolean;
}

const TABLE_COLUMN_BY_ENTRY_FIELD: Record<EntryField, string> = {
  id: "id",
  createdAt: "created_at",
  updatedAt: "updated_at",
  order: '"order"',
};
const ARRAY_INDEX_PATTERN = /^(?:0|[1-9]\d{0,4})$/;
/** Matches the dot between the names of a path: one without a backslash before it. `Dr\.Name` is a column with a dot in its name. */
const UNESCAPED_DOT_PATTERN = /(?<!\\)\./;

const isEntryField = (name: string): name is EntryField => (ENTRY_FIELD_NAMES as readonly string[]).includes(name);

/**
 * Parses a path. The prefix `data.` marks a column, and `entry.` a field such as `createdAt`. `allowsBareFields` makes the prefix of fields
 * optional.
 */
export function parseDocumentPath(
  value: unknown,
  fieldPath: string,
  source: Pick<QueriedDocument, "entryAlias">,
  allowsBareFields = false,
): Path {
  const name = requireQueryText(value, fieldPath, COLUMN_PATH_MAX_CHARACTERS);
  if (source.entryAlias !== null) {
    if (name.startsWith("entry.") && isEntryField(name.slice(6))) return { entryField: name.slice(6) as EntryField };
    if (allowsBareFields && isEntryField(name)) return { entryField: name };
  }
  const column = source.entryAlias !== null && name.startsWith("data.") ? name.slice(5) : name;
  const segments = column.split(UNESCAPED_DOT_PATTERN).map((segment) => segment.replaceAll("\\.", "."));
  if (column === "" || segments.length > COLUMN_PATH_MAX_SEGMENTS) {
    refuseField(
      fieldPath,
      `the path of a column: 1 to ${COLUMN_PATH_MAX_SEGMENTS} names with dots between them, such as Address.street`,
      value,
    );
  }
  return { entryField: null, segments };
}

const JSON_NULL_SQL = "'null'::jsonb";

/** Returns SQL for an entry's field such as `createdAt`, with the type of its table column. */
export const entryFieldSql = (field: EntryField, source: QueriedDocument): string =>
  `${source.entryAlias}.${TABLE_COLUMN_BY_ENTRY_FIELD[field]}`;

function entryFieldJsonSql(field: EntryField, source: QueriedDocument): string {
  const sql = entryFieldSql(field, source);
  if (field === "id" || field === "order") return `to_jsonb(${sql})`;
  return `to_jsonb(to_char(${sql} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
}

const segmentSql = (sql: string, segment: string, statement: SqlStatement): string =>
  ARRAY_INDEX_PATTERN.test(segment)
    ? `(${sql} #> ARRAY[${statement.bind(segment, "text")}])`
    : `(${sql} -> ${statement.bind(segment, "text")})`;

/** True if the caller cannot see the column. An empty path, as in $elemMatch, is the document itself, which is never hidden. */
const isHidden = ({ segments }: { segments: readonly string[] }, source: QueriedDocument): boolean =>
  segments.length > 0 && !source.canSeeColumn(segments[0]!);

/** Returns SQL for the jsonb value at a path; NULL if it is missing. Does not look into elements of arrays along the path. */
export function valueAtPathSql(path: Path, source: QueriedDocument, statement: SqlStatement): string {
  if (path.entryField !== null) return entryFieldJsonSql(path.entryField, source);
  if (isHidden(path, source)) return "NULL::jsonb";
  return path.segments.reduce((sql, segment) => segmentSql(sql, segment, statement), source.documentSql);
}

/** Returns SQL for the value at a path; JSON's null if it is missing. Indexes and `order` use this SQL. */
export const sortableValueSql = (path: Path, source: QueriedDocument, statement: SqlStatement): string =>
  `COALESCE(${valueAtPathSql(path, source, statement)}, ${JSON_NULL_SQL})`;

export const jsonNullIfMissingSql = (value: string): string => `COALESCE(${value}, ${JSON_NULL_SQL})`;

/** Builds SQL of a boolean that is never NULL. `value` is SQL of the type jsonb that may be NULL. */
export type ValueTestSql = (value: string) => string;

interface ReachableValues {
  /** True if the test also applies to each element of an array at the end of the path. */
  testsElements: boolean;
  /** True if a missing value can pass the test. Arrays along the path must be searched before a value counts as missing. */
  matchesMissing: boolean;
}

/** Returns SQL that is true for a non-empty array, by PostgreSQL's sort order of jsonb. Unlike `jsonb_typeof`, it can use an index. */
const isNonEmptyArraySql = (key: string): string => `(${key} > 'true'::jsonb AND ${key} < '{}'::jsonb)`;

/** Returns SQL for the JSON type of each value before the end of the path. Skips a value if an array index follows it in the path. */
export function jsonTypesAlongPathSql(
  segments: readonly string[],
  source: QueriedDocument,
  statement: SqlStatement,
): string[] {
  return segments.slice(1).flatMap((next, index) => {
    if (ARRAY_INDEX_PATTERN.test(next)) return [];
    return [
      `jsonb_typeof(${sortableValueSql({ entryField: null, segments: segments.slice(0, index + 1) }, source, statement)})`,
    ];
  });
}

/**
 * Returns SQL that is true if a value along the path is an array. With `testsElements`, it is also true if the value at the path's end is a
 * non-empty array. Returns null if no value can be an array.
 */
export function hasArrayOnPathSql(
  segments: readonly string[],
  source: QueriedDocument,
  statement: SqlStatement,
  testsElements = true,
): string | null {
  const arrayTests = jsonTypesAlongPathSql(segments, source, statement).map((type) => `${type} = 'array'`);
  if (testsElements)
    arrayTests.push(isNonEmptyArraySql(sortableValueSql({ entryField: null, segments }, source, statement)));
  if (arrayTests.length === 0) return null;
  return arrayTests.length === 1 ? arrayTests[0]! : `(${arrayTests.join(" OR ")})`;
}

/** Returns SQL for a FROM clause with one row for each value at the path, including elements of arrays along the path. */
function createValuesFromClause(
  segments: readonly string[],
  source: QueriedDocument,
  statement: SqlStatement,
  testsElements: boolean,
) {
  const firstAlias = statement.createAlias();
  let lastAlias = firstAlias;
  const parts = [`(SELECT ${segmentSql(source.documentSql, segments[0]!, statement)} AS v) ${firstAlias}`];
  const createLateralJoin = (sql: string) => {
    lastAlias = statement.createAlias();
    parts.push(`CROSS JOIN LATERAL (${sql}) ${lastAlias}`);
  };
  for (const segment of segments.slice(1)) {
    const lastValue = `${lastAlias}.v`;
    if (!ARRAY_INDEX_PATTERN.test(segment)) {
      const items = `CASE WHEN jsonb_typeof(${lastValue}) = 'array' THEN ${lastValue} ELSE jsonb_build_array(${lastValue}) END`;
      createLateralJoin(`SELECT value AS v FROM jsonb_array_elements(${items})`);
    }
    createLateralJoin(`SELECT ${segmentSql(`${lastAlias}.v`, segment, statement)} AS v`);
  }
  if (testsElements) {
    const items = `CASE WHEN jsonb_typeof(${lastAlias}.v) = 'array' THEN ${lastAlias}.v ELSE '[]' END`;
    createLateralJoin(`SELECT ${lastAlias}.v UNION ALL SELECT value FROM jsonb_array_elements(${items})`);
  }
  return { from: parts.join(" "), value: `${lastAlias}.v` };
}

/**
 * Returns SQL that is true if, for each test, a value at the path passes it. Unless a missing value can pass, the first part of this SQL
 * searches no arrays, so that PostgreSQL can use an index for it.
 */
export function anyValuePassesSql(
  path: Path,
  source: QueriedDocument,
  statement: SqlStatement,
  tests: readonly ValueTestSql[],
  reach: ReachableValues,
): string {
  const value = valueAtPathSql(path, source, statement);
  const directTestsSql = tests.map((test) => test(value)).join(" AND ");
  if (path.entryField !== null || path.segments.length === 0 || isHidden(path, source)) return `(${directTestsSql})`;
  const arrayOnPathSql = hasArrayOnPathSql(path.segments, source, statement, reach.testsElements);
  if (arrayOnPathSql === null) return `(${directTestsSql})`;
  const elementTestsSql = tests.map((test) => {
    const { from, value: lastValue } = createValuesFromClause(path.segments, source, statement, reach.testsElements);
    return `EXISTS (SELECT FROM ${from} WHERE ${test(lastValue)})`;
  });
  if (reach.matchesMissing)
    return `(CASE WHEN ${arrayOnPathSql} THEN ${elementTestsSql.join(" AND ")} ELSE ${directTestsSql} END)`;
  return `((${directTestsSql}) OR (${[arrayOnPathSql, ...elementTestsSql].join(" AND ")}))`;
}
