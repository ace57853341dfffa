/** Waiting for a condition that sends no event, with a bound. */
import { setTimeout as delay } from "node:timers/promises";

const POLL_MIN_MS = 10;
/** Conditions are often requests: a long wait that looks each 10 ms takes the processor time that it waits for. */
const POLL_MAX_MS = 50;
/** Ends what hangs; a busy machine takes its time. */
const LIMIT_MS = 60_000;

/**
 * Resolves with the first truthy answer of `condition`.
 * @throws Error after `limitMs` without one; what `condition` throws passes through
 */
export async function until<T>(condition: () => T | Promise<T>, limitMs = LIMIT_MS): Promise<NonNullable<T>> {
  const begun = Date.now();
  for (;;) {
    const answer = await condition();
    if (answer) return answer as NonNullable<T>;
    const waited = Date.now() - begun;
    if (waited > limitMs) throw new Error(`the condition did not hold within ${limitMs} ms: ${condition}`);
    await delay(Math.min(POLL_MAX_MS, Math.max(POLL_MIN_MS, waited / 20)));
  }
}
