/** Global scope of the library: a page's window, or the global scope of a server run, which may have neither a document nor a location. */
export const globalScope = globalThis as unknown as Pick<Window, "ENV" | "Svc"> &
  Partial<Pick<Window, "document" | "location" | "navigator" | "addEventListener">>;
