/**
 * Delays rejections of requests without a valid credential, so that guessing is slow. The first rejections of a network address are not
 * delayed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createTokenBucket } from "../../engine/token-bucket.js";

const REJECTION_DELAY_LIMITS = {
  /** Number of rejections that one network address can get at once without delay. As many become available again over each `windowMs`. */
  immediateRejections: 200,
  windowMs: 20_000,
  delayMs: 1_000,
  /** Maximum number of delayed rejections in progress. Each of them keeps a connection open. */
  maxDelayed: 2_000,
  maxDelayedPerAddress: 128,
};

export class RejectionDelay {
  private readonly rejectionBucket = createTokenBucket({
    limit: this.bounds.immediateRejections,
    windowMs: this.bounds.windowMs,
  });
  private readonly waitingBySender = new Map<string, number>();
  private delayedCount = 0;

  constructor(private readonly bounds = REJECTION_DELAY_LIMITS) {}

  /**
   * Waits until the rejection may be sent, and returns true. Returns false if too many rejections are waiting: the connection must then be
   * closed without a response.
   * @param sender network address of the rejected request
   */
  async wait(sender: string): Promise<boolean> {
    if (this.rejectionBucket.takeTokens(sender) === 0) return true;
    const waitingCount = this.waitingBySender.get(sender) ?? 0;
    if (waitingCount >= this.bounds.maxDelayedPerAddress || this.delayedCount >= this.bounds.maxDelayed) return false;
    this.waitingBySender.set(sender, waitingCount + 1);
    this.delayedCount += 1;
    await delay(this.bounds.delayMs, undefined, { ref: false });
    this.delayedCount -= 1;
    const remainingCount = this.waitingBySender.get(sender)! - 1;
    if (remainingCount > 0) this.waitingBySender.set(sender, remainingCount);
    else this.waitingBySender.delete(sender);
    return true;
  }
}
