/**
 * Delays the rejection of requests without a valid credential, so that guessing credentials is slow. The first
 * rejections for a network address are sent at once, later ones after a delay.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createTokenBucket } from "../../engine/token-bucket.js";

const REJECTION_DELAY_LIMITS = {
  /** Number of rejections within `windowMs` that the service sends to one network address without delay. */
  immediateRejections: 200,
  windowMs: 20_000,
  delayMs: 1_000,
  /** Maximum number of delayed rejections in progress. Each of them keeps a connection open. */
  maxDelayed: 2_000,
  maxDelayedPerAddress: 128,
};

export type RejectionDelay = ReturnType<typeof createRejectionDelay>;

export function createRejectionDelay(bounds = REJECTION_DELAY_LIMITS) {
  const refusalBucket = createTokenBucket({ limit: bounds.immediateRejections, windowMs: bounds.windowMs });
  const waitingBySender = new Map<string, number>();
  let delayedCount = 0;

  return {
    /**
     * Waits until the service may send a rejection to this network address.
     * @returns false if too many rejections wait already; then close the connection without a response
     */
    async wait(sender: string): Promise<boolean> {
      if (refusalBucket.takeTokens(sender) === 0) return true;
      const waitingCount = waitingBySender.get(sender) ?? 0;
      if (waitingCount >= bounds.maxDelayedPerAddress || delayedCount >= bounds.maxDelayed) return false;
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
