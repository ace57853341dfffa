/** Rate limits by key (token buckets), which are stored in the memory of this process. */

const KEYS_MAX = 50_000;
/** Key of the bucket that new keys share while there are already KEYS_MAX buckets. */
const SHARED_KEY = Symbol("others");

export interface TokenBucket {
  /** Takes `cost` tokens, and returns 0. If too few are left, takes none, and returns the seconds after which a retry would be allowed. */
  takeTokens(key: string, cost?: number): number;
  /**
   * Takes tokens for work that is already done, even if too few are left. The number of tokens can then become negative, down to `-limit`.
   * From there, it takes one window until the number is 0 again.
   */
  charge(key: string, cost: number): void;
}

/**
 * Creates rate limits. Each bucket allows `limit` calls at once, and then `limit` calls evenly spread over each `windowMs`. `keysMax` is
 * the maximum number of keys with their own bucket. `clock` returns milliseconds, and is for tests.
 */
export function createTokenBucket(options: {
  limit: number;
  windowMs: number;
  keysMax?: number;
  clock?: () => number;
}): TokenBucket {
  const { limit, windowMs, keysMax = KEYS_MAX, clock = () => performance.now() } = options;
  const buckets = new Map<string | typeof SHARED_KEY, { tokens: number; updatedAt: number }>();
  const tokensPerMs = limit / windowMs;
  let lastSweepAt = Number.NEGATIVE_INFINITY;

  /** Removes full buckets, because a new bucket is the same as a full one. */
  function removeFullBuckets(now: number): void {
    lastSweepAt = now;
    for (const [key, { tokens, updatedAt }] of buckets)
      if (tokens + (now - updatedAt) * tokensPerMs >= limit) buckets.delete(key);
  }

  /**
   * Returns the key of the bucket for `key`. Never removes a bucket that lacks tokens: a client with many addresses could otherwise reset
   * the buckets of other clients.
   */
  function selectBucketKey(key: string, now: number): string | typeof SHARED_KEY {
    if (buckets.has(key) || buckets.size < keysMax) return key;
    // Removing full buckets takes time in proportion to the keys, so it happens at most once in a hundredth of the window.
    if (now - lastSweepAt > windowMs / 100) removeFullBuckets(now);
    return buckets.size < keysMax ? key : SHARED_KEY;
  }

  function countRemainingTokens(key: string | typeof SHARED_KEY, now: number): number {
    const { tokens, updatedAt } = buckets.get(key) ?? { tokens: limit, updatedAt: now };
    return Math.min(limit, tokens + (now - updatedAt) * tokensPerMs);
  }

  return {
    takeTokens(key, cost = 1) {
      const now = clock();
      const bucketKey = selectBucketKey(key, now);
      const left = countRemainingTokens(bucketKey, now);
      // A call that costs more than a full bucket is allowed if the bucket is full.
      const neededTokens = Math.min(cost, limit);
      const isAccepted = left >= neededTokens;
      buckets.set(bucketKey, { tokens: isAccepted ? left - neededTokens : left, updatedAt: now });
      return isAccepted ? 0 : Math.max(1, Math.ceil((neededTokens - left) / tokensPerMs / 1000));
    },
    charge(key, cost) {
      const now = clock();
      const bucketKey = selectBucketKey(key, now);
      buckets.set(bucketKey, { tokens: Math.max(-limit, countRemainingTokens(bucketKey, now) - cost), updatedAt: now });
    },
  };
}
