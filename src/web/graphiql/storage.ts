/** Stores the content of GraphiQL's editors between visits, except the headers: a token in them must not outlive the tab. */

/** Removes the headers from a stored JSON value. GraphiQL's own option removes headers from tabs but not from the history. */
function removeHeaders(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value), (key, inner: unknown) => (key === "headers" ? undefined : inner));
  } catch {
    return value;
  }
}

/** Wraps a browser storage, usually localStorage, so that GraphiQL's stored values contain no headers. */
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
