/** Validates `limit`, `offset` and the cursor of a list, and limits a page by its size in bytes. */

import { ActionError } from "../errors.js";
import { PAGE_DEFAULT, PAGE_MAX, PAGE_MAX_BYTES } from "../limits.js";
import { refuseField } from "./fields.js";

function naturalNumber(value: unknown, name: string, fallback: number, max: number): number {
  if (value === undefined || value === null) return fallback;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return Math.min(value as number, max);
  refuseField(name, "a whole number from 0", value);
}

/** Parses `limit` and `offset`. A `limit` above `max` counts as `max`. @throws REQUEST_INVALID unless they are whole numbers */
export function parsePageLimits(
  options: { limit?: unknown; offset?: unknown },
  fallback = PAGE_DEFAULT,
  max = PAGE_MAX,
): { limit: number; offset: number } {
  return {
    limit: naturalNumber(options.limit, "limit", fallback, max),
    offset: naturalNumber(options.offset, "offset", 0, Number.MAX_SAFE_INTEGER),
  };
}

/** Returns the cursor that stands for the position after the row with this ID. */
export const cursorOf = (id: number): string => Buffer.from(`after ${id}`).toString("base64url");

/** Returns the ID in a cursor; null if there is no cursor. @throws REQUEST_INVALID unless `cursorOf` created the cursor */
export function idOfCursor(cursor: unknown, name = "cursor"): number | null {
  if (cursor === undefined || cursor === null) return null;
  const id = Number(/^after ([1-9]\d{0,15})$/.exec(Buffer.from(String(cursor), "base64url").toString())?.[1]);
  if (Number.isSafeInteger(id) && cursorOf(id) === cursor) return id;
  throw new ActionError("REQUEST_INVALID", `${name} must be the cursor of an earlier page`);
}

/**
 * Reserves memory for the bytes of a response, before the operation reads its rows. Rejects if the response would be too
 * large.
 */
export type ReserveBytes = (bytes: number) => Promise<void>;

/** ID of a row and the size of its values in bytes. */
export interface SizedRow {
  id: number;
  bytes: number;
}

/** Returns the IDs of the first rows that fit into PAGE_MAX_BYTES, at least one, after `reserve` has reserved their bytes. */
export async function idsThatFit(
  sized: readonly SizedRow[],
  reserve: ReserveBytes = async () => undefined,
): Promise<number[]> {
  let sum = 0;
  const ids: number[] = [];
  for (const { id, bytes } of sized) {
    if (ids.length > 0 && sum + bytes > PAGE_MAX_BYTES) break;
    sum += bytes;
    ids.push(id);
  }
  await reserve(sum);
  return ids;
}
