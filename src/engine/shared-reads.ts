/**
 * One answer for all who ask the same in one turn of the event loop. It is asked for behind the last of them, so that each gets what
 * was true after it came. Knows not what is read.
 */

/** `read` as it is called by many at once; they must not change what they are given. */
export function sharedReads<Key, Result>(read: (key: Key) => Promise<Result>): (key: Key) => Promise<Result> {
  const asked = new Map<Key, Promise<Result>>();

  async function ask(key: Key): Promise<Result> {
    await new Promise((resolve) => setImmediate(resolve));
    asked.delete(key);
    return read(key);
  }

  return (key) => {
    const answer = asked.get(key) ?? ask(key);
    asked.set(key, answer);
    return answer;
  };
}
