/** The bounds of a page of a list. Knows no list. */
import { ActionError } from "../errors.js";
import { PAGE_DEFAULT, PAGE_MAX } from "../limits.js";

function natural(value: unknown, name: string, fallback: number, max: number): number {
  if (value === undefined || value === null) return fallback;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return Math.min(value as number, max);
  throw new ActionError("REQUEST_INVALID", `${name} must be a whole number from 0`);
}

/**
 * A page's bounds: `limit` above `max` is cut to it.
 * @throws REQUEST_INVALID for anything that is no whole number
 */
export function page(
  options: { limit?: unknown; offset?: unknown },
  fallback = PAGE_DEFAULT,
  max = PAGE_MAX,
): { limit: number; offset: number } {
  return {
    limit: natural(options.limit, "limit", fallback, max),
    offset: natural(options.offset, "offset", 0, Number.MAX_SAFE_INTEGER),
  };
}
