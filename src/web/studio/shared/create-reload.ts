/** Creates functions that read data again. Callers of earlier reads wait until the newest read has ended. */

/**
 * Returns a function that reads the data again after a change. Its promise resolves when the newest read has ended, because an earlier read
 * may return the data from before the change.
 */
export function createReloadFunction(read: () => Promise<void>): () => Promise<void> {
  let newestRead: Promise<void> | null = null;
  return async () => {
    newestRead = read();
    let awaitedRead: Promise<void> | null = null;
    while (awaitedRead !== newestRead) {
      awaitedRead = newestRead;
      await awaitedRead;
    }
  };
}
