/** Extracts conditions on hashed columns from a `where`, because they can only be compared by hashing. */
import { ActionError } from "../../errors.js";
import { isObject } from "../described.js";
import { columnNamed } from "./entry-access.js";

/** The `where` without hashed columns, and the texts to compare with each hashed column. */
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
 * Extracts the comparisons of hashed columns from a `where`; null if there are none. In all other conditions, a hashed
 * column counts as absent.
 * @throws REQUEST_INVALID for other conditions
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
        `where.${column.slice(0, 60).toWellFormed()} is hashed: it can only be compared with a text, by equality`,
      );
    }
    compared.push([column, text]);
  }
  return compared.length === 0 ? null : { rest: Object.fromEntries(otherConditions), compared };
}
