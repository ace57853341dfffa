/** Waiting for a condition that sends no event, with a bound. */
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 10;
/** Ends what hangs; a busy machine takes its time. */
const LIMIT_MS = 20_000;

/**
 * Resolves with the first truthy answer of `condition`.
 * @throws Error after `limitMs` without one; what `condition` throws passes through
 */
export async function until<T>(condition: () => T | Promise<T>, limitMs = LIMIT_MS): Promise<NonNullable<T>> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const answer = await condition();
    if (answer) return answer as NonNullable<T>;
    if (Date.now() > deadline) throw new Error(`the condition did not hold within ${limitMs} ms: ${condition}`);
    await delay(POLL_MS);
  }
}
