/**
 * Global object that the client library uses: the window of a page, or the global object of a server run. A server run
 * may have no document and no location.
 */
export const globalScope = globalThis as unknown as Pick<Window, "ENV" | "Svc"> &
  Partial<Pick<Window, "document" | "location" | "navigator" | "addEventListener">>;
