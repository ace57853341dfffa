/** Functions that check a condition repeatedly until it is met or a time limit has passed, for conditions that no event signals. */
import { setTimeout as delay } from "node:timers/promises";
import { inspect, isDeepStrictEqual } from "node:util";

const POLL_MIN_MS = 10;
/** Maximum pause between two checks in milliseconds. More frequent checks would take processor time from the work under test. */
const POLL_MAX_MS = 50;
/** Time limit of a wait in milliseconds. It is long, so that a busy machine does not cause failures. */
const LIMIT_MS = 60_000;

/**
 * Resolves to the first truthy result of `condition`.
 * @throws Error if no result is truthy within `limitMs`, or the error that `condition` throws
 */
export async function until<T>(condition: () => T | Promise<T>, limitMs = LIMIT_MS): Promise<NonNullable<T>> {
  const startedAt = Date.now();
  for (;;) {
    const answer = await condition();
    if (answer) return answer as NonNullable<T>;
    const waited = Date.now() - startedAt;
    if (waited > limitMs) throw new Error(`the condition did not hold within ${limitMs} ms: ${condition}`);
    await delay(Math.min(POLL_MAX_MS, Math.max(POLL_MIN_MS, waited / 20)));
  }
}

/**
 * Waits until `read` returns a value that is deeply equal to `expected`.
 * @throws Error that names the last value, if no value is equal within `limitMs` or if `read` throws an error
 */
export async function untilEqual<T>(read: () => T | Promise<T>, expected: T, limitMs = LIMIT_MS): Promise<void> {
  let last: T | undefined;
  const isEqual = async () => {
    last = await read();
    return isDeepStrictEqual(last, expected);
  };
  await until(isEqual, limitMs).catch((cause: Error) => {
    throw new Error(`${cause.message}: expected ${inspect(expected)}, got ${inspect(last)}`, { cause });
  });
}
