/**
 * Global object that the library uses: a page's window, or the global object of a server run, which may have no
 * document and no location.
 */
export const globalScope = globalThis as unknown as Pick<Window, "ENV" | "Svc"> &
  Partial<Pick<Window, "document" | "location" | "navigator" | "addEventListener">>;
