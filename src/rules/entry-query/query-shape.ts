/**
 * Computes the shape of a query: its columns, operators and order, without values. The service counts slow queries by shape, and can
 * suggest an index for a shape.
 */
import { isObject } from "../describe-value.js";
import { type EntryField, parseDocumentPath } from "./path.js";

/** Column, or field such as `createdAt`, that a query uses in a condition or in its order. */
interface ShapeField {
  /** Path of the column as index definitions write it; null for a field such as `createdAt`. */
  column: string | null;
  topLevelColumn: string | null;
  /** Column or field with its operator or sort direction, such as "Age $gte". In a condition inside `$or`, `$nor` or `$not`, this operator comes first. */
  text: string;
}

interface ShapeCondition extends ShapeField {
  /** True if an index can help: the condition is not inside $or, $nor or $not, and its operator can use an index. */
  isRequired: boolean;
  isEquality: boolean;
}

interface ShapeSortKey extends ShapeField {
  descending: boolean;
}

export interface QueryShape {
  /** Columns with their operators, sorted. A column inside $or, $nor or $not also has this operator as a prefix. */
  where: string[];
  order: string[];
  aggregate: boolean;
}

export interface DetailedQueryShape extends QueryShape {
  conditions: readonly ShapeCondition[];
  sortKeys: readonly ShapeSortKey[];
}

/** Maximum number of conditions and sort keys. The service does not count slow queries with more, because they rarely repeat. */
const SHAPE_PARTS_MAX = 12;
const INDEXED_COLUMNS_MAX = 3;
const INDEXABLE_OPERATORS = ["$eq", "$in", "$gt", "$gte", "$lt", "$lte"];
const LIST_OPERATORS = ["$and", "$or", "$nor"];
const ENTRY = { entryAlias: "e" };

const escapeSegments = (segments: readonly string[]): string =>
  segments.map((segment) => segment.replaceAll(".", "\\.")).join(".");

function readShapeField(input: string, allowsBareFields: boolean, formatText: (name: string) => string): ShapeField {
  const path = parseDocumentPath(input, "", ENTRY, allowsBareFields);
  if (path.entryField !== null)
    return { column: null, topLevelColumn: null, text: formatText(path.entryField satisfies EntryField) };
  const column = escapeSegments(path.segments);
  return { column, topLevelColumn: path.segments[0]!, text: formatText(column) };
}

function readConditions(where: Record<string, unknown>, outerOperator: string): ShapeCondition[] {
  return Object.entries(where).flatMap(([key, value]) => {
    if (LIST_OPERATORS.includes(key)) {
      const innerOperator = key === "$and" ? outerOperator : `${outerOperator}${key} `;
      return (value as Record<string, unknown>[]).flatMap((branch) => readConditions(branch, innerOperator));
    }
    if (key === "$not") return readConditions(value as Record<string, unknown>, `${outerOperator}$not `);
    if (key === "$filters") {
      return (value as { column: string; condition: string }[]).map(({ column, condition }) => ({
        ...readShapeField(column, false, (name) => `${outerOperator}${name} ${condition}`),
        isRequired: false,
        isEquality: false,
      }));
    }
    const statedOperators = isObject(value) ? Object.keys(value).filter((operator) => operator.startsWith("$")) : [];
    const operators = statedOperators.length > 0 ? statedOperators : ["$eq"];
    return operators
      .filter((operator) => operator !== "$options")
      .map((operator) => ({
        ...readShapeField(key, false, (name) => `${outerOperator}${name} ${operator}`),
        isRequired: outerOperator === "" && INDEXABLE_OPERATORS.includes(operator),
        isEquality: operator === "$eq" || operator === "$in",
      }));
  });
}

function readSortKeys(order: unknown): ShapeSortKey[] {
  return (Array.isArray(order) ? order : []).map((element) => {
    const [column, direction = "ASC"] = (typeof element === "string" ? [element] : element) as [string, string?];
    const descending = direction.toUpperCase() === "DESC";
    return { ...readShapeField(column, true, (name) => `${name} ${descending ? "DESC" : "ASC"}`), descending };
  });
}

/**
 * Returns the shape of a valid query. Returns null if it has too many parts, or if the data source does not list one of its columns. So
 * callers cannot fill the service's list of shapes with invented names.
 * @param isKnownColumn returns true if the data source lists the column
 */
export function createQueryShape(
  query: unknown,
  isKnownColumn: (column: string) => boolean,
): DetailedQueryShape | null {
  if (!isObject(query)) return null;
  const { where, order, aggregate } = query;
  const conditions = isObject(where) ? readConditions(where, "") : [];
  const isAggregate = aggregate !== undefined && aggregate !== null;
  const sortKeys = isAggregate ? [] : readSortKeys(order);
  const texts = [...new Set(conditions.map(({ text }) => text))].sort();
  if (texts.length + sortKeys.length > SHAPE_PARTS_MAX) return null;
  if (
    ![...conditions, ...sortKeys].every(
      ({ topLevelColumn }) => topLevelColumn === null || isKnownColumn(topLevelColumn),
    )
  )
    return null;
  return { where: texts, order: sortKeys.map(({ text }) => text), aggregate: isAggregate, conditions, sortKeys };
}

const sortsInOneDirection = (sortKeys: readonly ShapeSortKey[]): boolean =>
  sortKeys.every(({ descending }) => descending === sortKeys[0]!.descending);

/**
 * True if an index on these columns helps queries of this shape. The queries must have a condition on the index's first column, or sort by
 * exactly these columns in one direction.
 */
export function canIndexSpeedUpQueries(
  columns: readonly string[],
  { conditions, sortKeys }: DetailedQueryShape,
): boolean {
  const plainColumns = columns.map((column) => readShapeField(column, false, (name) => name).column);
  if (conditions.some(({ isRequired, column }) => isRequired && column !== null && column === plainColumns[0]))
    return true;
  const sortedColumns = sortKeys.map(({ column }) => column);
  return (
    sortedColumns.length > 0 && sortsInOneDirection(sortKeys) && sortedColumns.join("\n") === plainColumns.join("\n")
  );
}

/**
 * Returns the columns of an index that helps queries of this shape; null if none does.
 * @param mayIndex returns true if the top-level column can be indexed
 */
export function suggestIndexColumns(
  { conditions, sortKeys }: DetailedQueryShape,
  mayIndex: (column: string) => boolean,
): string[] | null {
  const indexableConditions = conditions.filter(
    ({ isRequired, topLevelColumn }) => isRequired && topLevelColumn !== null && mayIndex(topLevelColumn),
  );
  const bestCondition = indexableConditions.find(({ isEquality }) => isEquality) ?? indexableConditions[0];
  if (bestCondition) return [bestCondition.column!];
  const isIndexable = sortKeys.every(({ topLevelColumn }) => topLevelColumn !== null && mayIndex(topLevelColumn));
  if (sortKeys.length === 0 || sortKeys.length > INDEXED_COLUMNS_MAX || !isIndexable || !sortsInOneDirection(sortKeys))
    return null;
  return sortKeys.map(({ column }) => column!);
}
