/** Stores GraphiQL's content between visits, but without headers, because a token must not stay after its tab is closed. */

/** Removes the headers from a stored value. GraphiQL's own option removes them from tabs but not from the history. */
function removeHeaders(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value), (key, inner: unknown) => (key === "headers" ? undefined : inner));
  } catch {
    return value;
  }
}

/** @param storage browser storage for the content, usually localStorage */
export function createHeaderlessStorage(storage: Storage) {
  return {
    getItem: (key: string) => storage.getItem(key),
    setItem: (key: string, value: string) => storage.setItem(key, removeHeaders(value)),
    removeItem: (key: string) => storage.removeItem(key),
    clear: () => storage.clear(),
    get length() {
      return storage.length;
    },
  };
}
