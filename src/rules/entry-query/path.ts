/**
 * Paths of columns (`Address.street`, `items.0.price`) and what they mean in SQL. The one place through which a query reaches a
 * document: a column that its caller may not see is, here, absent. Knows no operator.
 */
import { refuse } from "../fields.js";
import { PATH_MAX_CHARACTERS, PATH_MAX_SEGMENTS, text } from "./judge.js";
import type { Statement } from "./statement.js";

/** Fields of an entry itself, beside its `data`. */
export const OWN_FIELDS = ["id", "createdAt", "updatedAt", "order"] as const;
export type OwnField = (typeof OWN_FIELDS)[number];

export type Path = { own: OwnField } | { own: null; segments: readonly string[] };

/** What a query is asked of. */
export interface Source {
  /** SQL of the document, a jsonb that is not null. */
  doc: string;
  /** SQL of the alias whose columns are the entry's own; null where there is no entry around the document. */
  entry: string | null;
  /** Whether the caller may see this top-level column. */
  sees: (column: string) => boolean;
}

const SQL_OF_OWN: Record<OwnField, string> = {
  id: "id",
  createdAt: "created_at",
  updatedAt: "updated_at",
  order: '"order"',
};
const INDEX = /^(?:0|[1-9]\d{0,4})$/;
/** A dot that no backslash takes away: `Dr\.Name` is one column. */
const DOT = /(?<!\\)\./;

const isOwn = (name: string): name is OwnField => (OWN_FIELDS as readonly string[]).includes(name);

/**
 * The path that a text names. `data.` before it says that it is a column, `entry.` that it is a field of the entry itself; without
 * either, in the places where `bareOwn` is set, id, createdAt, updatedAt and order are the entry's.
 */
export function parsePath(value: unknown, place: string, source: Pick<Source, "entry">, bareOwn = false): Path {
  const name = text(value, place, PATH_MAX_CHARACTERS);
  if (source.entry !== null) {
    if (name.startsWith("entry.") && isOwn(name.slice(6))) return { own: name.slice(6) as OwnField };
    if (bareOwn && isOwn(name)) return { own: name };
  }
  const column = source.entry !== null && name.startsWith("data.") ? name.slice(5) : name;
  const segments = column.split(DOT).map((segment) => segment.replaceAll("\\.", "."));
  if (column === "" || segments.length > PATH_MAX_SEGMENTS) {
    refuse(place, `the path of a column, of at most ${PATH_MAX_SEGMENTS} names`, value);
  }
  return { own: null, segments };
}

const NULL = "'null'::jsonb";

/** A field of the entry itself as SQL of its own type. */
export const ownSql = (own: OwnField, source: Source): string => `${source.entry}.${SQL_OF_OWN[own]}`;

function ownJson(own: OwnField, source: Source): string {
  const sql = ownSql(own, source);
  if (own === "id" || own === "order") return `to_jsonb(${sql})`;
  return `to_jsonb(to_char(${sql} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;
}

const step = (sql: string, segment: string, statement: Statement): string =>
  INDEX.test(segment)
    ? `(${sql} #> ARRAY[${statement.bind(segment, "text")}])`
    : `(${sql} -> ${statement.bind(segment, "text")})`;

/** A path of no names is the document itself: the element that $elemMatch looks at. */
const isHidden = ({ segments }: { segments: readonly string[] }, source: Source): boolean =>
  segments.length > 0 && !source.sees(segments[0]!);

/** The value at a path where no array is on the way: jsonb, SQL's null where nothing is there. */
export function valueAt(path: Path, source: Source, statement: Statement): string {
  if (path.own !== null) return ownJson(path.own, source);
  if (isHidden(path, source)) return "NULL::jsonb";
  return path.segments.reduce((sql, segment) => step(sql, segment, statement), source.doc);
}

/** The same, null where nothing is there: what indexes are made of, and what entries are ordered by. */
export const keyAt = (path: Path, source: Source, statement: Statement): string =>
  `COALESCE(${valueAt(path, source, statement)}, ${NULL})`;

export const orNull = (value: string): string => `COALESCE(${value}, ${NULL})`;

/** A condition on one value: SQL of a boolean that is never null, of SQL of a jsonb that may be. */
export type Test = (value: string) => string;

/** What a test says of: every value at the path, or the arrays that stand there but not what is in them. */
interface Reach {
  /** Elements of an array at the end of the path count as values there. */
  elements: boolean;
  /** The test may hold where nothing is: an array on the way then needs to be looked through. */
  ofNothing: boolean;
}

/** SQL of jsonb's own order: lists that hold anything are above booleans and below objects. A range, so that an index serves it. */
const isFilledArray = (key: string): string => `(${key} > 'true'::jsonb AND ${key} < '{}'::jsonb)`;

/** SQL of the type of what stands at each place where the path would go on by a name. */
export function typesOnTheWay(segments: readonly string[], source: Source, statement: Statement): string[] {
  return segments.slice(1).flatMap((next, at) => {
    if (INDEX.test(next)) return [];
    return [`jsonb_typeof(${keyAt({ own: null, segments: segments.slice(0, at + 1) }, source, statement)})`];
  });
}

/** SQL of whether an array stands at the path or on the way, as `anyAt` asks for it; null where none could. */
export function arrayAt(
  segments: readonly string[],
  source: Source,
  statement: Statement,
  elements = true,
): string | null {
  const arrays = typesOnTheWay(segments, source, statement).map((type) => `${type} = 'array'`);
  if (elements) arrays.push(isFilledArray(keyAt({ own: null, segments }, source, statement)));
  if (arrays.length === 0) return null;
  return arrays.length === 1 ? arrays[0]! : `(${arrays.join(" OR ")})`;
}

/** Rows of every value at the path, elements of arrays on the way looked through one by one, as `name.v`. */
function valuesFrom(segments: readonly string[], source: Source, statement: Statement, elements: boolean) {
  const first = statement.name();
  let last = first;
  const parts = [`(SELECT ${step(source.doc, segments[0]!, statement)} AS v) ${first}`];
  const lateral = (sql: string) => {
    last = statement.name();
    parts.push(`CROSS JOIN LATERAL (${sql}) ${last}`);
  };
  for (const segment of segments.slice(1)) {
    const held = `${last}.v`;
    if (!INDEX.test(segment)) {
      const items = `CASE WHEN jsonb_typeof(${held}) = 'array' THEN ${held} ELSE jsonb_build_array(${held}) END`;
      lateral(`SELECT value AS v FROM jsonb_array_elements(${items})`);
    }
    lateral(`SELECT ${step(`${last}.v`, segment, statement)} AS v`);
  }
  if (elements) {
    const items = `CASE WHEN jsonb_typeof(${last}.v) = 'array' THEN ${last}.v ELSE '[]' END`;
    lateral(`SELECT ${last}.v UNION ALL SELECT value FROM jsonb_array_elements(${items})`);
  }
  return { from: parts.join(" "), value: `${last}.v` };
}

/**
 * SQL of whether each test passes for any value at the path. The value that stands there directly is asked first, by all tests in one,
 * in a form that an index on it serves; arrays on the way are looked through where there are any.
 */
export function anyAt(path: Path, source: Source, statement: Statement, tests: readonly Test[], reach: Reach): string {
  const value = valueAt(path, source, statement);
  const direct = tests.map((test) => test(value)).join(" AND ");
  if (path.own !== null || path.segments.length === 0 || isHidden(path, source)) return `(${direct})`;
  const isArray = arrayAt(path.segments, source, statement, reach.elements);
  if (isArray === null) return `(${direct})`;
  const inside = tests.map((test) => {
    const { from, value: held } = valuesFrom(path.segments, source, statement, reach.elements);
    return `EXISTS (SELECT FROM ${from} WHERE ${test(held)})`;
  });
  if (reach.ofNothing) return `(CASE WHEN ${isArray} THEN ${inside.join(" AND ")} ELSE ${direct} END)`;
  return `((${direct}) OR (${[isArray, ...inside].join(" AND ")}))`;
}
