/** GraphiQL's storage between visits, without headers: a token must not outlive its tab. */

/** GraphiQL can leave headers out of its tabs, but not out of its history. */
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
