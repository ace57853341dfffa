/** Rate limits by key, in the memory of this process. */

const KEYS_MAX = 50_000;
/** Key of the bucket that new keys share while KEYS_MAX buckets exist. */
const OTHERS = Symbol("others");

export interface TokenBucket {
  /** Counts a call of `cost` for `key`. Returns 0 if it is allowed, otherwise the seconds after which a retry would be. */
  takeTokens(key: string, cost?: number): number;
  /** Adds cost that has already arisen. Further calls wait until it is compensated, for at most one window. */
  charge(key: string, cost: number): void;
}

/**
 * Creates buckets that allow `limit` calls at once, and as many again evenly over each `windowMs`. `keysMax` is the number of keys with a
 * separate bucket.
 */
export function createTokenBucket(options: { limit: number; windowMs: number; keysMax?: number }): TokenBucket {
  const { limit, windowMs, keysMax = KEYS_MAX } = options;
  const buckets = new Map<string | typeof OTHERS, { left: number; at: number }>();
  const perMs = limit / windowMs;
  let sweptAt = Number.NEGATIVE_INFINITY;

  /** Removes full buckets, because a new bucket would be equal. */
  function removeFullBuckets(now: number): void {
    sweptAt = now;
    for (const [key, { left, at }] of buckets) if (left + (now - at) * perMs >= limit) buckets.delete(key);
  }

  /**
   * Returns the bucket of a key. A key that has used its bucket is never forgotten; otherwise a client with ever new
   * addresses could reset the buckets of others.
   */
  function bucketOf(key: string, now: number): string | typeof OTHERS {
    if (buckets.has(key) || buckets.size < keysMax) return key;
    // Sweeping takes time in proportion to the keys, so once in a hundredth of the window is enough.
    if (now - sweptAt > windowMs / 100) removeFullBuckets(now);
    return buckets.size < keysMax ? key : OTHERS;
  }

  function remainingTokens(key: string | typeof OTHERS, now: number): number {
    const { left, at } = buckets.get(key) ?? { left: limit, at: now };
    return Math.min(limit, left + (now - at) * perMs);
  }

  return {
    takeTokens(key, cost = 1) {
      const now = performance.now();
      const bucket = bucketOf(key, now);
      const left = remainingTokens(bucket, now);
      // A call that costs more than a whole window needs a full bucket.
      const needed = Math.min(cost, limit);
      const passes = left >= needed;
      buckets.set(bucket, { left: passes ? left - needed : left, at: now });
      return passes ? 0 : Math.max(1, Math.ceil((needed - left) / perMs / 1000));
    },
    charge(key, cost) {
      const now = performance.now();
      const bucket = bucketOf(key, now);
      buckets.set(bucket, { left: Math.max(-limit, remainingTokens(bucket, now) - cost), at: now });
    },
  };
}
