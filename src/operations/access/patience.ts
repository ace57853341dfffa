/**
 * How long who is refused for want of a credential waits for it: not at all at first, and longer than it takes to ask again where that
 * goes on without end. Answers nothing itself.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createTokenBucket } from "../../engine/token-bucket.js";

const BOUNDS = {
  /** Refusals that are given at once to one address, and again so many over the window. */
  refusals: 200,
  windowMs: 20_000,
  waitMs: 1_000,
  /** Each that waits keeps a connection. */
  waiting: 2_000,
  queuedOfOne: 128,
};

export type Patience = ReturnType<typeof createPatience>;

export function createPatience(bounds = BOUNDS) {
  const bucket = createTokenBucket({ limit: bounds.refusals, windowMs: bounds.windowMs });
  const waiting = new Map<string, number>();
  let all = 0;

  return {
    /**
     * Waits before one more refusal of that sender is given.
     * @returns false where too many wait already: it is not worth an answer
     */
    async wait(sender: string): Promise<boolean> {
      if (bucket.take(sender) === 0) return true;
      const own = waiting.get(sender) ?? 0;
      if (own >= bounds.queuedOfOne || all >= bounds.waiting) return false;
      waiting.set(sender, own + 1);
      all += 1;
      await delay(bounds.waitMs, undefined, { ref: false });
      all -= 1;
      const left = waiting.get(sender)! - 1;
      if (left > 0) waiting.set(sender, left);
      else waiting.delete(sender);
      return true;
    },
  };
}
