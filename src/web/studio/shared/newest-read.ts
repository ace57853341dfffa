/** Repeated reads of the same data: a later read cancels an earlier read or drops its response. */

/**
 * Returns a function that starts a read, and resolves when the newest read has ended. Until then, the page shows data from before the
 * change for which it reads again.
 */
export function createReload(read: () => Promise<void>): () => Promise<void> {
  let newest: Promise<void> | null = null;
  return async () => {
    newest = read();
    let ended: Promise<void> | null = null;
    while (ended !== newest) {
      ended = newest;
      await ended;
    }
  };
}
