/** Bounds how often one key may do something, in this process alone and in memory. Knows no key's meaning. */

const KEYS_MAX = 50_000;

export interface TokenBucket {
  /** Counts one call for `key`. Answers 0 when it is let through, else the seconds after which a repeat would be. */
  take(key: string): number;
}

/** `limit` calls at once, and as many again over each `windowMs`, spread evenly. */
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

  return {
    take(key) {
      const now = performance.now();
      if (buckets.size >= KEYS_MAX && !buckets.has(key)) sweep(now);
      const known = buckets.get(key) ?? { left: limit, at: now };
      const left = Math.min(limit, known.left + (now - known.at) * perMs);
      const passes = left >= 1;
      buckets.set(key, { left: passes ? left - 1 : left, at: now });
      return passes ? 0 : Math.max(1, Math.ceil((1 - left) / perMs / 1000));
    },
  };
}
