/** Bounds how often, or how much, one key may do something, in this process alone and in memory. Knows no key's meaning. */

const KEYS_MAX = 50_000;

export interface TokenBucket {
  /** Counts a call of `cost` for `key`. Answers 0 when it is let through, else the seconds after which a repeat would be. */
  take(key: string, cost?: number): number;
  /** Counts what has happened already: those that follow wait until it is made up for, one whole window at the most. */
  charge(key: string, cost: number): void;
}

/** `limit` at once, and as many again over each `windowMs`, spread evenly. */
export function createTokenBucket({ limit, windowMs }: { limit: number; windowMs: number }): TokenBucket {
  const buckets = new Map<string, { left: number; at: number }>();
  const perMs = limit / windowMs;

  /** Full ones say nothing that an absent one does not. */
  function sweep(now: number): void {
    for (const [key, { left, at }] of buckets) if (left + (now - at) * perMs >= limit) buckets.delete(key);
    // Still too many: the oldest start anew rather than memory growing without end.
    for (const key of buckets.keys()) {
      if (buckets.size < KEYS_MAX) break;
      buckets.delete(key);
    }
  }

  function leftFor(key: string, now: number): number {
    if (buckets.size >= KEYS_MAX && !buckets.has(key)) sweep(now);
    const { left, at } = buckets.get(key) ?? { left: limit, at: now };
    return Math.min(limit, left + (now - at) * perMs);
  }

  return {
    take(key, cost = 1) {
      const now = performance.now();
      const left = leftFor(key, now);
      // What costs more than a whole window takes a full bucket.
      const needed = Math.min(cost, limit);
      const passes = left >= needed;
      buckets.set(key, { left: passes ? left - needed : left, at: now });
      return passes ? 0 : Math.max(1, Math.ceil((needed - left) / perMs / 1000));
    },
    charge(key, cost) {
      const now = performance.now();
      buckets.set(key, { left: Math.max(-limit, leftFor(key, now) - cost), at: now });
    },
  };
}
