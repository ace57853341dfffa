/** GraphiQL's storage between visits, without headers: a token must not outlive its tab. */

/** GraphiQL can leave headers out of its tabs, but not out of its history. */
function withoutHeaders(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value), (key, inner: unknown) => (key === "headers" ? undefined : inner));
  } catch {
    return value;
  }
}

/** @param storage the browser storage to write to, usually localStorage */
export function headerlessStorage(storage: Storage) {
  return {
    getItem: (key: string) => storage.getItem(key),
    setItem: (key: string, value: string) => storage.setItem(key, withoutHeaders(value)),
    removeItem: (key: string) => storage.removeItem(key),
    clear: () => storage.clear(),
    get length() {
      return storage.length;
    },
  };
}
