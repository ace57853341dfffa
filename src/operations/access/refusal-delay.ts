/**
 * Delays the rejection of requests without a valid credential. The first rejections for a network address are sent at
 * once, later rejections after a delay, so that guessing credentials is slow.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createTokenBucket } from "../../engine/token-bucket.js";

const REFUSAL_BOUNDS = {
  /** Number of rejections that one network address gets without delay within `windowMs`. */
  immediateRejections: 200,
  windowMs: 20_000,
  delayMs: 1_000,
  /**
   * Maximum number of rejections that wait at the same time, because each waiting rejection holds a connection open.
   */
  maxDelayed: 2_000,
  maxDelayedPerSender: 128,
};

export type RefusalDelay = ReturnType<typeof createRefusalDelay>;

export function createRefusalDelay(bounds = REFUSAL_BOUNDS) {
  const refusalBucket = createTokenBucket({ limit: bounds.immediateRejections, windowMs: bounds.windowMs });
  const waitingBySender = new Map<string, number>();
  let delayedCount = 0;

  return {
    /**
     * Waits until the service may send a rejection to this sender.
     * @returns false if too many rejections are waiting, so that the connection must be closed without a response
     */
    async wait(sender: string): Promise<boolean> {
      if (refusalBucket.takeTokens(sender) === 0) return true;
      const waitingCount = waitingBySender.get(sender) ?? 0;
      if (waitingCount >= bounds.maxDelayedPerSender || delayedCount >= bounds.maxDelayed) return false;
      waitingBySender.set(sender, waitingCount + 1);
      delayedCount += 1;
      await delay(bounds.delayMs, undefined, { ref: false });
      delayedCount -= 1;
      const waitingLeft = waitingBySender.get(sender)! - 1;
      if (waitingLeft > 0) waitingBySender.set(sender, waitingLeft);
      else waitingBySender.delete(sender);
      return true;
    },
  };
}
