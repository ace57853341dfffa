/** Extracts the conditions on hashed columns from a `where`, because SQL cannot compare a text with a hash. */
import { ActionError } from "../../errors.js";
import { describeValue, isObject } from "../described.js";
import { columnOfWhereKey } from "./entry-access.js";

/** Parts of a `where`: the conditions on other columns, and the texts to compare with the hashes in hashed columns. */
export interface SplitWhere {
  whereWithoutHashed: Record<string, unknown>;
  hashedComparisons: readonly (readonly [column: string, text: string])[];
}

/** Returns the text that a condition compares a column with; undefined if the condition is not a comparison with a text. */
function textToCompare(condition: unknown): string | undefined {
  const value = isObject(condition) && Object.keys(condition).join() === "$eq" ? condition["$eq"] : condition;
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" ? String(value) : undefined;
}

/**
 * Splits a `where` into conditions on hashed columns and all others; null if no condition at the top level names a hashed
 * column. In nested conditions, a hashed column counts as absent.
 * @throws REQUEST_INVALID if a condition on a hashed column is not a comparison with a text
 */
export function splitHashedWhere(where: unknown, hashed: readonly string[]): SplitWhere | null {
  if (!isObject(where) || hashed.length === 0) return null;
  const compared: [string, string][] = [];
  const otherConditions: [string, unknown][] = [];
  for (const [key, condition] of Object.entries(where)) {
    const column = key.startsWith("$") ? null : columnOfWhereKey(key);
    if (column === null || !hashed.includes(column)) {
      otherConditions.push([key, condition]);
      continue;
    }
    const text = textToCompare(condition);
    if (text === undefined) {
      throw new ActionError(
        "REQUEST_INVALID",
        `where.${column.slice(0, 60).toWellFormed()} must be a text to compare with, because the column is hashed (got ${describeValue(condition)})`,
      );
    }
    compared.push([column, text]);
  }
  return compared.length === 0
    ? null
    : { whereWithoutHashed: Object.fromEntries(otherConditions), hashedComparisons: compared };
}
