/** Computes the shape of a query: its columns, operators and order, without values. Also finds the index that serves the shape. */
import { isObject } from "../described.js";
import { type OwnField, parsePath } from "./path.js";

/** A column's path, or a field of the entry itself, and its operators. */
interface NamedColumn {
  /** Name in an index definition; null for a field of the entry itself. */
  column: string | null;
  top: string | null;
  text: string;
}

interface ShapeCondition extends NamedColumn {
  /** True if every found entry meets the condition: it is outside of $or, $nor and $not, so that an index can be used for it. */
  isFound: boolean;
  isEquality: boolean;
}

interface ShapeSorting extends NamedColumn {
  descending: boolean;
}

export interface QueryShape {
  /** Columns with their operators, sorted; then the conditions within $or, $nor and $not. */
  where: string[];
  order: string[];
  aggregate: boolean;
}

export interface CheckedShape extends QueryShape {
  conditions: readonly ShapeCondition[];
  sorting: readonly ShapeSorting[];
}

/** Maximum number of parts of a shape. Longer queries rarely repeat, so they are not recorded. */
const PARTS_MAX = 12;
const COLUMNS_MAX = 3;
const FOUND_BY_INDEX = ["$eq", "$in", "$gt", "$gte", "$lt", "$lte"];
const LIST_OPERATORS = ["$and", "$or", "$nor"];
const ENTRY = { entry: "e" };

const escapeSegments = (segments: readonly string[]): string =>
  segments.map((segment) => segment.replaceAll(".", "\\.")).join(".");

function nameColumn(input: string, bareOwn: boolean, text: (name: string) => string): NamedColumn {
  const path = parsePath(input, "", ENTRY, bareOwn);
  if (path.own !== null) return { column: null, top: null, text: text(path.own satisfies OwnField) };
  const column = escapeSegments(path.segments);
  return { column, top: path.segments[0]!, text: text(column) };
}

function conditionsOf(where: Record<string, unknown>, within: string): ShapeCondition[] {
  return Object.entries(where).flatMap(([key, value]) => {
    if (LIST_OPERATORS.includes(key)) {
      const innerPath = key === "$and" ? within : `${within}${key} `;
      return (value as Record<string, unknown>[]).flatMap((branch) => conditionsOf(branch, innerPath));
    }
    if (key === "$not") return conditionsOf(value as Record<string, unknown>, `${within}$not `);
    if (key === "$filters") {
      return (value as { column: string; condition: string }[]).map(({ column, condition }) => ({
        ...nameColumn(column, false, (name) => `${within}${name} ${condition}`),
        isFound: false,
        isEquality: false,
      }));
    }
    const statedOperators = isObject(value) ? Object.keys(value).filter((operator) => operator.startsWith("$")) : [];
    const operators = statedOperators.length > 0 ? statedOperators : ["$eq"];
    return operators
      .filter((operator) => operator !== "$options")
      .map((operator) => ({
        ...nameColumn(key, false, (name) => `${within}${name} ${operator}`),
        isFound: within === "" && FOUND_BY_INDEX.includes(operator),
        isEquality: operator === "$eq" || operator === "$in",
      }));
  });
}

function sortingOf(order: unknown): ShapeSorting[] {
  return (Array.isArray(order) ? order : []).map((element) => {
    const [column, direction = "ASC"] = (typeof element === "string" ? [element] : element) as [string, string?];
    const descending = direction.toUpperCase() === "DESC";
    return { ...nameColumn(column, true, (name) => `${name} ${descending ? "DESC" : "ASC"}`), descending };
  });
}

/**
 * Returns the shape of a valid query. Null if it has too many parts, or names columns that `knows` does not: otherwise callers could fill
 * the list with invented names.
 */
export function shapeOf(query: unknown, knows: (column: string) => boolean): CheckedShape | null {
  if (!isObject(query)) return null;
  const { where, order, aggregate } = query;
  const conditions = isObject(where) ? conditionsOf(where, "") : [];
  const isAggregate = aggregate !== undefined && aggregate !== null;
  const sorting = isAggregate ? [] : sortingOf(order);
  const texts = [...new Set(conditions.map(({ text }) => text))].sort();
  if (texts.length + sorting.length > PARTS_MAX) return null;
  if (![...conditions, ...sorting].every(({ top }) => top === null || knows(top))) return null;
  return { where: texts, order: sorting.map(({ text }) => text), aggregate: isAggregate, conditions, sorting };
}

const isOneWay = (sorting: readonly ShapeSorting[]): boolean =>
  sorting.every(({ descending }) => descending === sorting[0]!.descending);

/** True if an index on those columns serves the query: by its first column, or by its order. */
export function indexServesShape(columns: readonly string[], { conditions, sorting }: CheckedShape): boolean {
  const plainColumns = columns.map((column) => nameColumn(column, false, (name) => name).column);
  if (conditions.some(({ isFound, column }) => isFound && column !== null && column === plainColumns[0])) return true;
  const sortedColumns = sorting.map(({ column }) => column);
  return sortedColumns.length > 0 && isOneWay(sorting) && sortedColumns.join("\n") === plainColumns.join("\n");
}

/**
 * Returns the columns of an index that would serve the query; null if none would.
 * @param mayIndex true if the top-level column can be indexed
 */
export function suggestionFor(
  { conditions, sorting }: CheckedShape,
  mayIndex: (column: string) => boolean,
): string[] | null {
  const indexableConditions = conditions.filter(({ isFound, top }) => isFound && top !== null && mayIndex(top));
  const bestCondition = indexableConditions.find(({ isEquality }) => isEquality) ?? indexableConditions[0];
  if (bestCondition) return [bestCondition.column!];
  const isIndexable = sorting.every(({ top }) => top !== null && mayIndex(top));
  if (sorting.length === 0 || sorting.length > COLUMNS_MAX || !isIndexable || !isOneWay(sorting)) return null;
  return sorting.map(({ column }) => column!);
}
