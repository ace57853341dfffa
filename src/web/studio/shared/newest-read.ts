/** Repeats the read of the same data. A later read replaces an earlier one, whose response is then ignored. */

/**
 * Returns a function that reads the data again after a change. Its promise resolves when the newest read has ended, because an earlier read
 * may return the data from before the change.
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
