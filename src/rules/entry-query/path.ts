/**
 * Parses paths of columns (`Address.street`, `items.0.price`) and builds their SQL. All queries access documents only
 * through this file, so that hidden columns are absent everywhere.
 */
import { refuseField } from "../fields.js";
import { checkText, PATH_MAX_CHARACTERS, PATH_MAX_SEGMENTS } from "./judge.js";
import type { Statement } from "./statement.js";

/** Fields of an entry in addition to its columns in `data`. */
export const OWN_FIELDS = ["id", "createdAt", "updatedAt", "order"] as const;
export type OwnField = (typeof OWN_FIELDS)[number];

export type Path = { own: OwnField } | { own: null; segments: readonly string[] };

/** SQL of the document in which paths are looked up. */
export interface Source {
  /** SQL expression of the document: a jsonb that is never NULL. */
  doc: string;
  /** Alias of the entry's row; null if the document belongs to no entry. */
  entry: string | null;
  /** True if the caller can see this top-level column. */
  sees: (column: string) => boolean;
}

const SQL_OF_OWN: Record<OwnField, string> = {
  id: "id",
  createdAt: "created_at",
  updatedAt: "updated_at",
  order: '"order"',
};
const INDEX = /^(?:0|[1-9]\d{0,4})$/;
/** Matches a dot without a backslash before it, because `Dr\.Name` is one column. */
const DOT = /(?<!\\)\./;

const isOwnField = (name: string): name is OwnField => (OWN_FIELDS as readonly string[]).includes(name);

/**
 * Parses a path. The prefix `data.` marks a column, and `entry.` a field such as `createdAt`. If `bareOwn` is true, the
 * names id, createdAt, updatedAt and order without a prefix also mean those fields.
 */
export function parsePath(value: unknown, fieldPath: string, source: Pick<Source, "entry">, bareOwn = false): Path {
  const name = checkText(value, fieldPath, PATH_MAX_CHARACTERS);
  if (source.entry !== null) {
    if (name.startsWith("entry.") && isOwnField(name.slice(6))) return { own: name.slice(6) as OwnField };
    if (bareOwn && isOwnField(name)) return { own: name };
  }
  const column = source.entry !== null && name.startsWith("data.") ? name.slice(5) : name;
  const segments = column.split(DOT).map((segment) => segment.replaceAll("\\.", "."));
  if (column === "" || segments.length > PATH_MAX_SEGMENTS) {
    refuseField(
      fieldPath,
      `the path of a column with at most ${PATH_MAX_SEGMENTS} names, such as Address.street`,
      value,
    );
  }
  return { own: null, segments };
}

const JSON_NULL = "'null'::jsonb";

/** Returns SQL for a field such as `createdAt`, in the type of its table column. */
export const ownFieldSql = (own: OwnField, source: Source): string => `${source.entry}.${SQL_OF_OWN[own]}`;

function ownJson(own: OwnField, source: Source): string {
  const sql = ownFieldSql(own, source);
  if (own === "id" || own === "order") return `to_jsonb(${sql})`;
  return `to_jsonb(to_char(${sql} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
}

const stepSql = (sql: string, segment: string, statement: Statement): string =>
  INDEX.test(segment)
    ? `(${sql} #> ARRAY[${statement.bind(segment, "text")}])`
    : `(${sql} -> ${statement.bind(segment, "text")})`;

/** True if the caller cannot see the column of the path. An empty path means the document itself, as in $elemMatch. */
const isHidden = ({ segments }: { segments: readonly string[] }, source: Source): boolean =>
  segments.length > 0 && !source.sees(segments[0]!);

/** Returns SQL for the value at a path as jsonb, or NULL if missing. Does not search the elements of arrays along the path. */
export function valueAt(path: Path, source: Source, statement: Statement): string {
  if (path.own !== null) return ownJson(path.own, source);
  if (isHidden(path, source)) return "NULL::jsonb";
  return path.segments.reduce((sql, segment) => stepSql(sql, segment, statement), source.doc);
}

/** Returns SQL for the value at a path, or JSON's null if missing, as indexes and `order` use it. */
export const keyAt = (path: Path, source: Source, statement: Statement): string =>
  `COALESCE(${valueAt(path, source, statement)}, ${JSON_NULL})`;

export const jsonNullIfMissing = (value: string): string => `COALESCE(${value}, ${JSON_NULL})`;

/** Condition on one value: converts SQL of a nullable jsonb to SQL of a boolean that is never NULL. */
export type Test = (value: string) => string;

/** Values at a path to which a test applies. */
interface ReachableValues {
  /** True if elements of an array at the end of the path count as values. */
  elements: boolean;
  /** True if the test can be true for a missing value. Then arrays along the path must be searched first. */
  matchesMissing: boolean;
}

/**
 * Returns SQL that is true for a non-empty array. In jsonb's order these are above booleans and below objects. The
 * comparison can use an index; `jsonb_typeof` could not.
 */
const isFilledArray = (key: string): string => `(${key} > 'true'::jsonb AND ${key} < '{}'::jsonb)`;

/** Returns SQL for the JSON type of each value along the path that is followed by a name, where an array can be. */
export function jsonTypesAlongPath(segments: readonly string[], source: Source, statement: Statement): string[] {
  return segments.slice(1).flatMap((next, index) => {
    if (INDEX.test(next)) return [];
    return [`jsonb_typeof(${keyAt({ own: null, segments: segments.slice(0, index + 1) }, source, statement)})`];
  });
}

/** Returns SQL that is true if there is an array at the path or along it; null if there can be none. */
export function arrayAt(
  segments: readonly string[],
  source: Source,
  statement: Statement,
  elements = true,
): string | null {
  const arrays = jsonTypesAlongPath(segments, source, statement).map((type) => `${type} = 'array'`);
  if (elements) arrays.push(isFilledArray(keyAt({ own: null, segments }, source, statement)));
  if (arrays.length === 0) return null;
  return arrays.length === 1 ? arrays[0]! : `(${arrays.join(" OR ")})`;
}

/** Returns the SQL of a FROM clause with one row for each value at the path, including elements of arrays along the path. */
function valuesFrom(segments: readonly string[], source: Source, statement: Statement, elements: boolean) {
  const first = statement.uniqueName();
  let last = first;
  const parts = [`(SELECT ${stepSql(source.doc, segments[0]!, statement)} AS v) ${first}`];
  const lateralJoin = (sql: string) => {
    last = statement.uniqueName();
    parts.push(`CROSS JOIN LATERAL (${sql}) ${last}`);
  };
  for (const segment of segments.slice(1)) {
    const lastValue = `${last}.v`;
    if (!INDEX.test(segment)) {
      const items = `CASE WHEN jsonb_typeof(${lastValue}) = 'array' THEN ${lastValue} ELSE jsonb_build_array(${lastValue}) END`;
      lateralJoin(`SELECT value AS v FROM jsonb_array_elements(${items})`);
    }
    lateralJoin(`SELECT ${stepSql(`${last}.v`, segment, statement)} AS v`);
  }
  if (elements) {
    const items = `CASE WHEN jsonb_typeof(${last}.v) = 'array' THEN ${last}.v ELSE '[]' END`;
    lateralJoin(`SELECT ${last}.v UNION ALL SELECT value FROM jsonb_array_elements(${items})`);
  }
  return { from: parts.join(" "), value: `${last}.v` };
}

/**
 * Returns SQL that is true if each test passes for at least one value at the path. It first tests the direct value, for
 * which PostgreSQL can use an index, and then the elements of arrays along the path.
 */
export function anyValueAt(
  path: Path,
  source: Source,
  statement: Statement,
  tests: readonly Test[],
  reach: ReachableValues,
): string {
  const value = valueAt(path, source, statement);
  const directTests = tests.map((test) => test(value)).join(" AND ");
  if (path.own !== null || path.segments.length === 0 || isHidden(path, source)) return `(${directTests})`;
  const isArray = arrayAt(path.segments, source, statement, reach.elements);
  if (isArray === null) return `(${directTests})`;
  const elementTests = tests.map((test) => {
    const { from, value: lastValue } = valuesFrom(path.segments, source, statement, reach.elements);
    return `EXISTS (SELECT FROM ${from} WHERE ${test(lastValue)})`;
  });
  if (reach.matchesMissing) return `(CASE WHEN ${isArray} THEN ${elementTests.join(" AND ")} ELSE ${directTests} END)`;
  return `((${directTests}) OR (${[isArray, ...elementTests].join(" AND ")}))`;
}
