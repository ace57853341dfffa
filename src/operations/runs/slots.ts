/** Slots limit concurrent runs, in total and per app. A run whose result another run waits for uses an additional (nested) slot. */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { RUN_CHAIN_DEPTH_MAX } from "../../limits.js";

/** The number of slots is RUNNER_CONCURRENCY times this factor. */
const TOTAL_SLOTS_FACTOR = 4;
/** Maximum number of slots of one app while at least RUNNER_CONCURRENCY slots are in use. For the last slots, it is one. */
const BUSY_SLOTS_PER_APP_MAX = 2;

export interface Slot {
  /** 0 for an ordinary run. A nested run is one level above the run that waits for it. */
  readonly level: number;
  /** A second call has no effect. */
  free(): void;
}

/** Slot that is reserved while the database selects the run that will use it. */
export interface ReservedSlot {
  /** An app that already uses this many slots cannot get the slot. */
  readonly slotLimitOfApp: number;
  assignToApp(appId: number): Slot;
  free(): void;
}

export class Slots {
  readonly totalSlots: number;
  private readonly idleSlotLimitOfApp: number;
  private readonly slotCountByApp = new Map<number, number>();
  /** One semaphore per nesting level. A run waits only for runs of the next level, so the runs of a chain cannot block each other. */
  private readonly nestedSemaphores: readonly FairSemaphore[];
  private usedCount = 0;
  private reservedCount = 0;
  private nestedCount = 0;
  private readonly emptyListeners: (() => void)[] = [];

  constructor(
    private readonly runnerConcurrency: number,
    private readonly onFree: () => void,
  ) {
    this.totalSlots = runnerConcurrency * TOTAL_SLOTS_FACTOR;
    this.idleSlotLimitOfApp = Math.max(1, runnerConcurrency - 1);
    const getLimitPerApp = (level: number) => (level === 0 ? this.idleSlotLimitOfApp : 1);
    this.nestedSemaphores = Array.from(
      { length: RUN_CHAIN_DEPTH_MAX },
      (_, level) => new FairSemaphore(Number.POSITIVE_INFINITY, getLimitPerApp(level)),
    );
  }

  /** Returns the maximum number of slots of one app while `usedCount` slots are in use. The last slots are for apps that use none. */
  private computeSlotLimitOfApp(usedCount: number): number {
    if (usedCount < this.runnerConcurrency) return this.idleSlotLimitOfApp;
    return usedCount < this.totalSlots - this.runnerConcurrency
      ? Math.min(this.idleSlotLimitOfApp, BUSY_SLOTS_PER_APP_MAX)
      : 1;
  }

  private countUsedSlots(appId: number): number {
    return this.slotCountByApp.get(appId) ?? 0;
  }

  private createSlot(level: number, onRelease: () => void): Slot {
    let isReleased = false;
    return {
      level,
      free: () => {
        if (isReleased) return;
        isReleased = true;
        onRelease();
        this.onFree();
        this.resolveIfEmpty();
      },
    };
  }

  private resolveIfEmpty(): void {
    if (this.usedCount + this.nestedCount > 0) return;
    for (const resolve of this.emptyListeners.splice(0)) resolve();
  }

  private createAppSlot(appId: number): Slot {
    this.reservedCount -= 1;
    this.slotCountByApp.set(appId, this.countUsedSlots(appId) + 1);
    return this.createSlot(0, () => {
      this.usedCount -= 1;
      if (this.countUsedSlots(appId) === 1) this.slotCountByApp.delete(appId);
      else this.slotCountByApp.set(appId, this.countUsedSlots(appId) - 1);
    });
  }

  private createNestedSlot(level: number, releaseSlot: () => void): Slot {
    this.nestedCount += 1;
    return this.createSlot(level, () => {
      this.nestedCount -= 1;
      releaseSlot();
    });
  }

  tryAcquire(appId: number): Slot | null {
    // Counts reserved slots too, because each may be assigned to this app.
    const isAtLimit = this.countUsedSlots(appId) + this.reservedCount >= this.getSlotLimitOfApp();
    return isAtLimit ? null : (this.reserve()?.assignToApp(appId) ?? null);
  }

  /** True if the app could get a slot after all reserved slots became free. */
  canAcquire(appId: number): boolean {
    const assignedCount = this.usedCount - this.reservedCount;
    return assignedCount < this.totalSlots && this.countUsedSlots(appId) < this.computeSlotLimitOfApp(assignedCount);
  }

  reserve(): ReservedSlot | null {
    if (this.usedCount >= this.totalSlots) return null;
    const slotLimitOfApp = this.getSlotLimitOfApp();
    this.usedCount += 1;
    this.reservedCount += 1;
    return {
      slotLimitOfApp,
      assignToApp: (appId) => this.createAppSlot(appId),
      free: () => {
        this.reservedCount -= 1;
        this.usedCount -= 1;
        this.resolveIfEmpty();
      },
    };
  }

  /** Returns a nested slot for a run whose result the run in the slot `parent` waits for; null if none of the next level is free. */
  tryAcquireNested(appId: number, parent: Slot): Slot | null {
    const freeSlot = this.nestedSemaphores[parent.level]?.tryEnter(appId);
    return freeSlot ? this.createNestedSlot(parent.level + 1, freeSlot) : null;
  }

  /** Like `tryAcquireNested`, but waits until a nested slot is free. */
  async acquireNested(appId: number, parent: Slot): Promise<Slot> {
    return this.createNestedSlot(parent.level + 1, await this.nestedSemaphores[parent.level]!.enter(appId));
  }

  getSlotLimitOfApp(): number {
    return this.computeSlotLimitOfApp(this.usedCount);
  }

  countFreeSlots(): number {
    return this.totalSlots - this.usedCount;
  }

  /** Returns the number of used slots by app ID, without nested slots. */
  getSlotCountByApp(): ReadonlyMap<number, number> {
    return this.slotCountByApp;
  }

  isAnyAppAtLimit(): boolean {
    return [...this.slotCountByApp.values()].some((count) => count >= this.getSlotLimitOfApp());
  }

  async waitUntilEmpty(): Promise<void> {
    if (this.usedCount + this.nestedCount > 0) await new Promise<void>((resolve) => this.emptyListeners.push(resolve));
  }
}
