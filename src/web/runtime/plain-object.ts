/** Converts collections that authors pass as options. Uses only JavaScript itself, because it also runs in server runs without a page. */

/** Converts URLSearchParams, Headers or a Map to a plain object. The values of a repeated name become an array. */
export function toPlainObject(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const iterable = value as { [Symbol.iterator]?(): Iterator<[string, unknown]> };
  if (typeof iterable[Symbol.iterator] !== "function" || Array.isArray(value)) return value;
  const pairs = new Map<string, unknown>();
  for (const [name, item] of iterable as Iterable<[string, unknown]>) {
    pairs.set(name, pairs.has(name) ? [pairs.get(name), item].flat() : item);
  }
  return Object.fromEntries(pairs);
}
