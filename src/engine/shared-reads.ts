/** Shares one read among all calls with the same key in one turn of the event loop. No caller gets data older than its call. */

/** Returns a function like `read` whose results are shared by concurrent callers. Callers must not change a result. */
export function shareConcurrentReads<Key, Result>(read: (key: Key) => Promise<Result>): (key: Key) => Promise<Result> {
  const activeReads = new Map<Key, Promise<Result>>();

  async function startRead(key: Key): Promise<Result> {
    await new Promise((resolve) => setImmediate(resolve));
    activeReads.delete(key);
    return read(key);
  }

  return (key) => {
    const answer = activeReads.get(key) ?? startRead(key);
    activeReads.set(key, answer);
    return answer;
  };
}
