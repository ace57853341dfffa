/** Slots limit concurrent runs, in total and per app. A run whose result another run waits for uses an additional (nested) slot. */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { RUN_CHAIN_DEPTH_MAX } from "../../limits.js";

/** The number of slots is RUNNER_CONCURRENCY times this factor. */
const TOTAL_SLOTS_FACTOR = 4;
/** Highest slot limit of one app while RUNNER_CONCURRENCY or more slots are in use. If at most that many are free, the limit is 1. */
const BUSY_SLOTS_PER_APP_MAX = 2;

export interface Slot {
  /** 0 for an ordinary run. A nested run is one level above the run that waits for it. */
  readonly level: number;
  /** A second call has no effect. */
  free(): void;
}

export class Slots {
  readonly totalSlots: number;
  private readonly semaphore: FairSemaphore;
  /** One semaphore per nesting level. A run waits only for runs of the next level, so the runs of a chain cannot block each other. */
  private readonly nestedSemaphores: readonly FairSemaphore[];

  constructor(
    private readonly runnerConcurrency: number,
    private readonly onFree: () => void,
  ) {
    this.totalSlots = runnerConcurrency * TOTAL_SLOTS_FACTOR;
    this.semaphore = new FairSemaphore(this.totalSlots, runnerConcurrency);
    this.nestedSemaphores = Array.from(
      { length: RUN_CHAIN_DEPTH_MAX },
      (_, level) => new FairSemaphore(Number.POSITIVE_INFINITY, level === 0 ? runnerConcurrency : 1),
    );
  }

  /** Returns the maximum number of slots of one app while `usedCount` slots are in use. The last slots are for apps that use none. */
  getSlotLimitOfApp(usedCount = this.semaphore.takenCount): number {
    const { runnerConcurrency, totalSlots } = this;
    if (usedCount < runnerConcurrency) return runnerConcurrency;
    return usedCount < totalSlots - runnerConcurrency ? Math.min(runnerConcurrency, BUSY_SLOTS_PER_APP_MAX) : 1;
  }

  isAnySlotUsed(): boolean {
    return [this.semaphore, ...this.nestedSemaphores].some(({ takenCount }) => takenCount > 0);
  }

  private createSlot(level: number, release: () => void): Slot {
    let isReleased = false;
    return {
      level,
      free: () => {
        if (isReleased) return;
        isReleased = true;
        release();
        this.onFree();
      },
    };
  }

  /** @param reservedCount number of slots for claimed runs of unknown apps; they count for each app */
  tryAcquire(appId: number, reservedCount = 0): Slot | null {
    return this.canAcquire(appId, reservedCount) ? this.acquire(appId) : null;
  }

  /** Acquires a slot without a check of the limits. */
  acquire(appId: number): Slot {
    return this.createSlot(0, this.semaphore.takeSlot(appId));
  }

  /** True if a slot is free for the app. `reservedCount`: number of slots to count as used by the app in addition. */
  canAcquire(appId: number, reservedCount = 0): boolean {
    const usedCount = this.semaphore.takenCount + reservedCount;
    const usedByApp = (this.getSlotCountByApp().get(appId) ?? 0) + reservedCount;
    return usedCount < this.totalSlots && usedByApp < this.getSlotLimitOfApp(usedCount);
  }

  /** Waits for a free nested slot, one level above `parent`. The run in the slot `parent` waits for the result of the new run. */
  async acquireNested(appId: number, parent: Slot): Promise<Slot> {
    return this.createSlot(parent.level + 1, await this.nestedSemaphores[parent.level]!.enter(appId));
  }

  countFreeSlots(): number {
    return this.totalSlots - this.semaphore.takenCount;
  }

  /** Returns the number of used slots by app ID, without nested slots. */
  getSlotCountByApp(): ReadonlyMap<number, number> {
    return this.semaphore.takenCountByKey as ReadonlyMap<number, number>;
  }

  isAnyAppAtLimit(): boolean {
    return [...this.getSlotCountByApp().values()].some((count) => count >= this.getSlotLimitOfApp());
  }
}
