/** Validates `limit`, `offset` and cursors of lists, and cuts pages by their size. */

import { ActionError } from "../errors.js";
import { PAGE_DEFAULT, PAGE_MAX, PAGE_MAX_BYTES } from "../limits.js";
import { refuseField } from "./fields.js";

function naturalNumber(value: unknown, name: string, fallback: number, max: number): number {
  if (value === undefined || value === null) return fallback;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return Math.min(value as number, max);
  refuseField(name, "a whole number from 0", value);
}

/** Limits of a page: `limit` is cut to `max`. @throws REQUEST_INVALID unless it is a whole number */
export function createPage(
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

/** Returns the ID in a cursor; null if there is no cursor. @throws REQUEST_INVALID for a text that `cursorOf` cannot have created */
export function idOfCursor(cursor: unknown, name = "cursor"): number | null {
  if (cursor === undefined || cursor === null) return null;
  const id = Number(/^after ([1-9]\d{0,15})$/.exec(Buffer.from(String(cursor), "base64url").toString())?.[1]);
  if (Number.isSafeInteger(id) && cursorOf(id) === cursor) return id;
  throw new ActionError("REQUEST_INVALID", `${name} must be the cursor of an earlier page`);
}

/**
 * Reserves bytes for a response. The operation reads the rows after the promise has resolved. The promise rejects if the response would be
 * too large.
 */
export type ReserveBytes = (bytes: number) => Promise<void>;

/** Row that may belong to a page of large values: its ID and the size of its values. */
export interface SizedRow {
  id: number;
  bytes: number;
}

/** Returns the first entries that fit into PAGE_MAX_BYTES, at least one. Their bytes are reserved. @throws as `reserve` */
export async function pageOf(
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
