/** Extracts the conditions on hashed columns from a `where`, because SQL cannot compare a text with a hash. */
import { ActionError } from "../../errors.js";
import { describeValue, isObject } from "../described.js";
import { columnNamed } from "./entry-access.js";

/** Parts of a `where`: `rest` without the conditions on hashed columns, and the texts to compare with hashed columns. */
export interface HashedWhere {
  rest: Record<string, unknown>;
  compared: readonly (readonly [column: string, text: string])[];
}

/** Returns the text with which a condition compares; undefined if the condition is not a comparison. */
function comparedText(condition: unknown): string | undefined {
  const value = isObject(condition) && Object.keys(condition).join() === "$eq" ? condition["$eq"] : condition;
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" ? String(value) : undefined;
}

/**
 * Splits a `where`; null if it compares no hashed column. Only conditions at the top of the `where` are extracted. In
 * nested conditions, a hashed column counts as absent.
 * @throws REQUEST_INVALID if such a condition is not a comparison with a text
 */
export function splitHashed(where: unknown, hashed: readonly string[]): HashedWhere | null {
  if (!isObject(where) || hashed.length === 0) return null;
  const compared: [string, string][] = [];
  const otherConditions: [string, unknown][] = [];
  for (const [key, condition] of Object.entries(where)) {
    const column = key.startsWith("$") ? null : columnNamed(key);
    if (column === null || !hashed.includes(column)) {
      otherConditions.push([key, condition]);
      continue;
    }
    const text = comparedText(condition);
    if (text === undefined) {
      throw new ActionError(
        "REQUEST_INVALID",
        `where.${column.slice(0, 60).toWellFormed()} must be a text to compare with, because the column is hashed (got ${describeValue(condition)})`,
      );
    }
    compared.push([column, text]);
  }
  return compared.length === 0 ? null : { rest: Object.fromEntries(otherConditions), compared };
}
