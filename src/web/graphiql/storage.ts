/** GraphiQL's memory between visits, less every header: a token must not outlive its tab. */

/** GraphiQL leaves headers out of its tabs when told to, but not out of its history. */
function withoutHeaders(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value), (key, inner: unknown) => (key === "headers" ? undefined : inner));
  } catch {
    return value;
  }
}

/** @param stored where it is kept, localStorage as a rule */
export function headerlessStorage(stored: Storage) {
  return {
    getItem: (key: string) => stored.getItem(key),
    setItem: (key: string, value: string) => stored.setItem(key, withoutHeaders(value)),
    removeItem: (key: string) => stored.removeItem(key),
    clear: () => stored.clear(),
    get length() {
      return stored.length;
    },
  };
}
