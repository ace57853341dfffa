/** Parses `limit`, `offset` and the cursor of a request for a page of a list. Also limits the size of a page in bytes. */

import { ActionError } from "../errors.js";
import { LIST_ITEMS_PER_PAGE_DEFAULT, LIST_ITEMS_PER_PAGE_MAX, LIST_PAGE_MAX_BYTES } from "../limits.js";
import { refuseField } from "./fields.js";

function requireWholeNumber(value: unknown, name: string, fallback: number, max: number): number {
  if (value === undefined || value === null) return fallback;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return Math.min(value as number, max);
  refuseField(name, "a whole number of 0 or more", value);
}

/**
 * Parses `limit` and `offset`. A `limit` above `max` counts as `max`.
 * @throws REQUEST_INVALID if one of them is not a whole number of 0 or more
 */
export function parseLimitAndOffset(
  options: { limit?: unknown; offset?: unknown },
  fallback = LIST_ITEMS_PER_PAGE_DEFAULT,
  max = LIST_ITEMS_PER_PAGE_MAX,
): { limit: number; offset: number } {
  return {
    limit: requireWholeNumber(options.limit, "limit", fallback, max),
    offset: requireWholeNumber(options.offset, "offset", 0, Number.MAX_SAFE_INTEGER),
  };
}

/** Creates a cursor: a text with which a caller gets the rows after the row with this ID. */
export const createRowCursor = (id: number): string => Buffer.from(`after ${id}`).toString("base64url");

/** Returns the row ID in a cursor; null if the caller sent no cursor. @throws REQUEST_INVALID if the cursor is invalid */
export function parseRowCursor(cursor: unknown, name = "cursor"): number | null {
  if (cursor === undefined || cursor === null) return null;
  const id = Number(/^after ([1-9]\d{0,15})$/.exec(Buffer.from(String(cursor), "base64url").toString())?.[1]);
  if (Number.isSafeInteger(id) && createRowCursor(id) === cursor) return id;
  throw new ActionError("REQUEST_INVALID", `${name} must be a cursor from an earlier page of this list`);
}

/** Reserves memory for a response before its rows are read. Rejects if the response is too large, or if too little memory is free. */
export type ReserveResponseBytes = (bytes: number) => Promise<void>;

/** ID of a row, and the bytes that the row adds to a response. */
export interface SizedRow {
  id: number;
  bytes: number;
}

/** Reserves memory for the first rows that together fit into LIST_PAGE_MAX_BYTES, but at least one row. Returns the IDs of these rows. */
export async function selectIdsThatFitOnPage(
  sizedRows: readonly SizedRow[],
  reserveBytes: ReserveResponseBytes = async () => undefined,
): Promise<number[]> {
  let totalBytes = 0;
  const ids: number[] = [];
  for (const { id, bytes } of sizedRows) {
    if (ids.length > 0 && totalBytes + bytes > LIST_PAGE_MAX_BYTES) break;
    totalBytes += bytes;
    ids.push(id);
  }
  await reserveBytes(totalBytes);
  return ids;
}
