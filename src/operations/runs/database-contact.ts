/**
 * Tracks how long this process has reached the database without a gap. Read it to see when another process with a lapsed lease may be
 * declared dead.
 */

/** A longer gap between two answers may have kept the other processes from renewing as well. */
const GAP_MAX_MS = 6_000;

export interface DatabaseContact {
  /** The database has answered. */
  reached(): void;
  /** The database could not be reached. */
  lost(): void;
  /** True if there has been no gap for `steadyMs`: every live process has had that long to renew its lease. */
  isSteady(): boolean;
}

/** @param now a monotonic clock in milliseconds */
export function createDatabaseContact(steadyMs: number, now: () => number = () => performance.now()): DatabaseContact {
  let since = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  return {
    reached() {
      const at = now();
      if (since > at || at - last > GAP_MAX_MS) since = at;
      last = at;
    },
    lost() {
      since = Number.POSITIVE_INFINITY;
    },
    isSteady: () => now() - since >= steadyMs && now() - last <= GAP_MAX_MS,
  };
}
