/** Creates caches of recently used values with a maximum number of entries. */
import { LRUCache } from "lru-cache";

/** Allocates memory only for its entries. The option `max` of lru-cache would allocate 12 MB and take 17 ms for one service. */
export function createBoundedCache<Key extends {}, Value extends {}>(
  max: number,
  options: { ttl?: number; noUpdateTTL?: boolean } = {},
): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1, ...options });
}
