/** The global scope that the library is in: a page's, or that of a server run's worker, which has neither a document nor a place. */
export const scope = globalThis as unknown as Pick<Window, "ENV" | "Svc"> &
  Partial<Pick<Window, "document" | "location" | "navigator" | "addEventListener">>;
