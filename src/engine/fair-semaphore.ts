/** Semaphore that gives its slots to keys in turn (round-robin), so that a key with many requests delays only itself. */

type SemaphoreKey = number | string;

/**
 * True if a key with `usedByKey` slots may get another one. A key may have at most half (rounded up) of the slots that the other keys leave
 * free.
 * @param usedCount number of slots that all keys hold together
 */
export function mayKeyGetSlot(total: number, usedCount: number, usedByKey: number): boolean {
  return usedByKey + 1 <= Math.ceil((total - (usedCount - usedByKey)) / 2);
}

export class FairSemaphore {
  /** Waiting callers by key, in the order in which keys get slots. A key that gets a slot moves to the end. */
  private readonly waiting = new Map<SemaphoreKey, Set<() => void>>();
  private readonly slotCountByKey = new Map<SemaphoreKey, number>();
  private taken = 0;

  /**
   * If `shares` is "halved", a key may hold at most half of the slots that other keys leave free. With any value, it may hold at most
   * `slotsPerKeyMax`.
   */
  constructor(
    private readonly slotsMax: number,
    private readonly slotsPerKeyMax: number,
    private readonly shares: "equal" | "halved" = "equal",
  ) {}

  private mayEnter(key: SemaphoreKey): boolean {
    const keyCount = this.slotCountByKey.get(key) ?? 0;
    if (this.taken >= this.slotsMax || keyCount >= this.slotsPerKeyMax) return false;
    return this.shares === "equal" || mayKeyGetSlot(this.slotsMax, this.taken, keyCount);
  }

  get takenCount(): number {
    return this.taken;
  }

  get takenCountByKey(): ReadonlyMap<SemaphoreKey, number> {
    return this.slotCountByKey;
  }

  /** Takes a slot without a check of the limits. Returns a function that frees it. */
  takeSlot(key: SemaphoreKey): () => void {
    this.taken += 1;
    this.slotCountByKey.set(key, (this.slotCountByKey.get(key) ?? 0) + 1);
    let isFree = false;
    return () => {
      if (isFree) return;
      isFree = true;
      this.taken -= 1;
      if (this.slotCountByKey.get(key) === 1) this.slotCountByKey.delete(key);
      else this.slotCountByKey.set(key, this.slotCountByKey.get(key)! - 1);
      // One freed slot can let several callers continue: if `shares` is "halved", it raises the maximum of several keys, which can then
      // also get other free slots.
      while (this.resumeNextWaiter());
    };
  }

  private resumeNextWaiter(): boolean {
    for (const [key, waiters] of this.waiting) {
      if (!this.mayEnter(key)) continue;
      const [resume] = waiters;
      this.waiting.delete(key);
      waiters.delete(resume!);
      if (waiters.size > 0) this.waiting.set(key, waiters);
      resume!();
      return true;
    }
    return false;
  }

  private waitForSlot(key: SemaphoreKey, signal: AbortSignal | undefined): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiters = this.waiting.get(key) ?? new Set();
      const resume = () => {
        signal?.removeEventListener("abort", stopWaiting);
        resolve(this.takeSlot(key));
      };
      const stopWaiting = () => {
        const currentWaiters = this.waiting.get(key);
        currentWaiters?.delete(resume);
        if (currentWaiters?.size === 0) this.waiting.delete(key);
        reject(signal!.reason as Error);
      };
      this.waiting.set(key, waiters.add(resume));
      signal?.addEventListener("abort", stopWaiting, { once: true });
    });
  }

  countWaiting(key: SemaphoreKey): number {
    return this.waiting.get(key)?.size ?? 0;
  }

  /**
   * Returns a function that frees the taken slot; null if all slots are taken, if the key has its maximum, or if other callers of the key
   * already wait.
   */
  tryEnter(key: SemaphoreKey): (() => void) | null {
    return this.mayEnter(key) && !this.waiting.has(key) ? this.takeSlot(key) : null;
  }

  /** Returns a function that frees the slot. `createSignal` is called only if the caller has to wait. @throws the signal's abort reason */
  async enter(key: SemaphoreKey, createSignal?: () => AbortSignal): Promise<() => void> {
    const freeSlot = this.tryEnter(key);
    if (freeSlot) return freeSlot;
    const signal = createSignal?.();
    signal?.throwIfAborted();
    return this.waitForSlot(key, signal);
  }
}
