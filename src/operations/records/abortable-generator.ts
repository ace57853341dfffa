/**
 * Creates async iterables that end at once when their reader stops. A plain async generator would first wait for the promise that it
 * awaits.
 */

/**
 * Returns an async generator like the one that `createGenerator` creates. When the reader stops, the signal `readerLeft` aborts, and the
 * generator of `createGenerator` must stop waiting.
 */
export function createAbortableGenerator<T>(
  createGenerator: (readerLeft: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  const readerLeftController = new AbortController();
  const generator = createGenerator(readerLeftController.signal);
  return {
    next: () => generator.next(),
    return() {
      readerLeftController.abort();
      return generator.return();
    },
    throw(error) {
      readerLeftController.abort();
      return generator.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await this.return();
    },
  };
}

/** Iterates over `source` until it ends. When the signal aborts, closes the iterator of `source`. */
export function endIterableOnAbort<T>(source: AsyncIterable<T>, readerLeft: AbortSignal): AsyncIterable<T> {
  const iterator = source[Symbol.asyncIterator]();
  const stopWaiting = () => {
    // The reader has left and cannot receive an error.
    iterator.return?.().catch(() => undefined);
  };
  readerLeft.addEventListener("abort", stopWaiting, { once: true });
  return { [Symbol.asyncIterator]: () => iterator };
}
