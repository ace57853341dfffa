/**
 * Computes the shape of a query: its columns, operators and order, without values. The service counts slow queries by
 * shape and suggests an index for a shape.
 */
import { isObject } from "../described.js";
import { type OwnField, parsePath } from "./path.js";

/** Column or other field of an entry (such as `createdAt`) in a query. */
interface NamedColumn {
  /** Path of the column as in an index definition; null for a field such as `createdAt`. */
  column: string | null;
  topLevelColumn: string | null;
  /** Column with its operator or direction, as the shape contains it. */
  text: string;
}

interface ShapeCondition extends NamedColumn {
  /** True if every result meets the condition, because it is outside of $or, $nor and $not. Then an index can help. */
  isRequired: boolean;
  isEquality: boolean;
}

interface ShapeSorting extends NamedColumn {
  descending: boolean;
}

export interface QueryShape {
  /** Columns with their operators, sorted as texts. A condition within $or, $nor or $not starts with that operator. */
  where: string[];
  order: string[];
  aggregate: boolean;
}

export interface CheckedShape extends QueryShape {
  conditions: readonly ShapeCondition[];
  sorting: readonly ShapeSorting[];
}

/** Maximum number of conditions and sort keys of a shape. Longer queries are not recorded, because they rarely repeat. */
const PARTS_MAX = 12;
const COLUMNS_MAX = 3;
const FOUND_BY_INDEX = ["$eq", "$in", "$gt", "$gte", "$lt", "$lte"];
const LIST_OPERATORS = ["$and", "$or", "$nor"];
const ENTRY = { entry: "e" };

const escapeSegments = (segments: readonly string[]): string =>
  segments.map((segment) => segment.replaceAll(".", "\\.")).join(".");

function nameColumn(input: string, bareOwn: boolean, text: (name: string) => string): NamedColumn {
  const path = parsePath(input, "", ENTRY, bareOwn);
  if (path.own !== null) return { column: null, topLevelColumn: null, text: text(path.own satisfies OwnField) };
  const column = escapeSegments(path.segments);
  return { column, topLevelColumn: path.segments[0]!, text: text(column) };
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
        isRequired: false,
        isEquality: false,
      }));
    }
    const statedOperators = isObject(value) ? Object.keys(value).filter((operator) => operator.startsWith("$")) : [];
    const operators = statedOperators.length > 0 ? statedOperators : ["$eq"];
    return operators
      .filter((operator) => operator !== "$options")
      .map((operator) => ({
        ...nameColumn(key, false, (name) => `${within}${name} ${operator}`),
        isRequired: within === "" && FOUND_BY_INDEX.includes(operator),
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
 * Returns the shape of a valid query; null if the query has too many parts or unknown columns. Unknown columns are not
 * recorded, because callers could fill the list of shapes with invented names.
 * @param knows true if the data source lists the column
 */
export function queryShapeOf(query: unknown, knows: (column: string) => boolean): CheckedShape | null {
  if (!isObject(query)) return null;
  const { where, order, aggregate } = query;
  const conditions = isObject(where) ? conditionsOf(where, "") : [];
  const isAggregate = aggregate !== undefined && aggregate !== null;
  const sorting = isAggregate ? [] : sortingOf(order);
  const texts = [...new Set(conditions.map(({ text }) => text))].sort();
  if (texts.length + sorting.length > PARTS_MAX) return null;
  if (![...conditions, ...sorting].every(({ topLevelColumn }) => topLevelColumn === null || knows(topLevelColumn)))
    return null;
  return { where: texts, order: sorting.map(({ text }) => text), aggregate: isAggregate, conditions, sorting };
}

const isOneWay = (sorting: readonly ShapeSorting[]): boolean =>
  sorting.every(({ descending }) => descending === sorting[0]!.descending);

/** True if the query can use an index on these columns: for a condition on the first column, or for the order. */
export function indexServesShape(columns: readonly string[], { conditions, sorting }: CheckedShape): boolean {
  const plainColumns = columns.map((column) => nameColumn(column, false, (name) => name).column);
  if (conditions.some(({ isRequired, column }) => isRequired && column !== null && column === plainColumns[0]))
    return true;
  const sortedColumns = sorting.map(({ column }) => column);
  return sortedColumns.length > 0 && isOneWay(sorting) && sortedColumns.join("\n") === plainColumns.join("\n");
}

/**
 * Returns the columns of an index that would make the query faster; null if there is none.
 * @param mayIndex true if the top-level column can be indexed
 */
export function suggestIndexColumns(
  { conditions, sorting }: CheckedShape,
  mayIndex: (column: string) => boolean,
): string[] | null {
  const indexableConditions = conditions.filter(
    ({ isRequired, topLevelColumn }) => isRequired && topLevelColumn !== null && mayIndex(topLevelColumn),
  );
  const bestCondition = indexableConditions.find(({ isEquality }) => isEquality) ?? indexableConditions[0];
  if (bestCondition) return [bestCondition.column!];
  const isIndexable = sorting.every(({ topLevelColumn }) => topLevelColumn !== null && mayIndex(topLevelColumn));
  if (sorting.length === 0 || sorting.length > COLUMNS_MAX || !isIndexable || !isOneWay(sorting)) return null;
  return sorting.map(({ column }) => column!);
}
