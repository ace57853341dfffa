/** Makes async iterables that end at once when their reader leaves. A plain generator ends only when the value that it awaits arrives. */

/**
 * Makes an async iterable whose generator stops when the reader leaves: the signal that `make` receives is aborted then, and the generator
 * must stop waiting.
 */
export function createLeavable<T>(
  make: (readerLeft: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  const leaveController = new AbortController();
  const generator = make(leaveController.signal);
  return {
    next: () => generator.next(),
    return() {
      leaveController.abort();
      return generator.return();
    },
    throw(error) {
      leaveController.abort();
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

/** Yields the values of `source`, and ends as soon as `readerLeft` aborts. */
export function endOnAbort<T>(source: AsyncIterable<T>, readerLeft: AbortSignal): AsyncIterable<T> {
  const iterator = source[Symbol.asyncIterator]();
  const stopWaiting = () => {
    // The source has no reader any more.
    iterator.return?.().catch(() => undefined);
  };
  readerLeft.addEventListener("abort", stopWaiting, { once: true });
  return { [Symbol.asyncIterator]: () => iterator };
}
