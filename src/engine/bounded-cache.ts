/** Creates caches of recently used values with a maximum number of entries. */
import { LRUCache } from "lru-cache";

/**
 * Returns a cache that allocates memory only for its entries. With the option `max`, lru-cache would allocate memory for all of them in
 * advance.
 */
export function createBoundedCache<Key extends {}, Value extends {}>(
  max: number,
  options: { ttl?: number; noUpdateTTL?: boolean } = {},
): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1, ...options });
}
