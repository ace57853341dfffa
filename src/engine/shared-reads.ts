/** Shares one read among all calls with the same key in one turn of the event loop. No caller gets data older than its call. */

/** Returns a function like `read` whose results are shared by concurrent callers. Callers must not change a result. */
export function shareConcurrentReads<Key, Result>(read: (key: Key) => Promise<Result>): (key: Key) => Promise<Result> {
  const requested = new Map<Key, Promise<Result>>();

  async function startRead(key: Key): Promise<Result> {
    await new Promise((resolve) => setImmediate(resolve));
    requested.delete(key);
    return read(key);
  }

  return (key) => {
    const answer = requested.get(key) ?? startRead(key);
    requested.set(key, answer);
    return answer;
  };
}
