/** Async iterables that their reader can leave while they wait. A plain generator notices that only when the awaited value arrives. */

/** Yields the values of `make`. When its reader leaves, `left` aborts, and `make` must stop waiting. */
export function leavable<T>(make: (left: AbortSignal) => AsyncGenerator<T, void, void>): AsyncGenerator<T, void, void> {
  const leaving = new AbortController();
  const made = make(leaving.signal);
  return {
    next: () => made.next(),
    return() {
      leaving.abort();
      return made.return();
    },
    throw(error) {
      leaving.abort();
      return made.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await this.return();
    },
  };
}

/** Yields `source` for a derived iterable: ends as soon as `left` aborts. */
export function leftWith<T>(source: AsyncIterable<T>, left: AbortSignal): AsyncIterable<T> {
  const iterator = source[Symbol.asyncIterator]();
  const leave = () => {
    // The source has no reader any more.
    iterator.return?.().catch(() => undefined);
  };
  left.addEventListener("abort", leave, { once: true });
  return { [Symbol.asyncIterator]: () => iterator };
}
