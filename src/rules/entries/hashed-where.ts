/** Separates the conditions on hashed columns from a `where`, because SQL cannot compare a text with a hash. */
import { ActionError } from "../../errors.js";
import { describeValue, isObject } from "../describe-value.js";
import { WHERE_MAX_DEPTH } from "../entry-query/checks.js";
import { getColumnNamedByWhereKey } from "./entry-access.js";

/** Parts of a `where`: the conditions on other columns, and the text to compare with each hashed column. */
export interface SeparatedWhere {
  whereWithoutHashed: Record<string, unknown>;
  hashedComparisons: readonly (readonly [column: string, text: string])[];
}

/** Returns the text (or the number as text) to which a condition compares a column; undefined for any other condition. */
function readComparedText(condition: unknown): string | undefined {
  const value = isObject(condition) && Object.keys(condition).join() === "$eq" ? condition["$eq"] : condition;
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" ? String(value) : undefined;
}

/** Returns the text to which the condition compares a hashed column. @throws REQUEST_INVALID if it is no such comparison */
function parseComparedText(column: string, condition: unknown): string {
  const text = readComparedText(condition);
  if (text !== undefined) return text;
  throw new ActionError(
    "REQUEST_INVALID",
    `where.${column.slice(0, 60).toWellFormed()} must be a number or a text that is not empty, because the column is hashed (got ${describeValue(condition)})`,
  );
}

/** Rejects a second comparison with the same hashed column, because each comparison costs much CPU time. @throws REQUEST_INVALID */
function rejectRepeatedColumns(comparisons: SeparatedWhere["hashedComparisons"]): void {
  const columns = comparisons.map(([column]) => column);
  const repeatedColumn = columns.find((column, index) => columns.indexOf(column) < index);
  if (repeatedColumn === undefined) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `where can compare the hashed column ${JSON.stringify(repeatedColumn)} only once (got several comparisons)`,
  );
}

/**
 * Splits a `where` into comparisons with hashed columns and all other conditions. Returns null if it has no hashed column at its top level
 * or in `$and`. In other nested conditions, hashed columns count as missing.
 * @throws REQUEST_INVALID if a condition on a hashed column is no comparison with a text or number, or if a column is compared twice
 */
export function separateHashedConditions(
  where: unknown,
  hashedColumns: readonly string[],
  depth = 0,
): SeparatedWhere | null {
  // A `where` that nests deeper is rejected when it is compiled to SQL.
  if (!isObject(where) || hashedColumns.length === 0 || depth > WHERE_MAX_DEPTH) return null;
  const hashedComparisons: (readonly [string, string])[] = [];
  const otherConditions: [string, unknown][] = [];
  for (const [key, condition] of Object.entries(where)) {
    if (key === "$and" && Array.isArray(condition)) {
      const branches = condition.map((branch) => ({
        branch,
        separatedBranch: separateHashedConditions(branch, hashedColumns, depth + 1),
      }));
      hashedComparisons.push(
        ...branches.flatMap(({ separatedBranch: separated }) => separated?.hashedComparisons ?? []),
      );
      otherConditions.push([
        key,
        branches.map(({ branch, separatedBranch: separated }) => separated?.whereWithoutHashed ?? branch),
      ]);
      continue;
    }
    const column = key.startsWith("$") ? null : getColumnNamedByWhereKey(key);
    if (column === null || !hashedColumns.includes(column)) otherConditions.push([key, condition]);
    else hashedComparisons.push([column, parseComparedText(column, condition)]);
  }
  rejectRepeatedColumns(hashedComparisons);
  return hashedComparisons.length === 0
    ? null
    : { whereWithoutHashed: Object.fromEntries(otherConditions), hashedComparisons };
}
