/**
 * Slots limit how many runs a process executes at once, in total and per app. A run for which another run waits uses an additional (nested)
 * slot, so that the two runs cannot block each other.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { RUN_CHAIN_DEPTH_MAX } from "../../limits.js";

/** The number of slots is RUNNER_CONCURRENCY times this factor. The more slots are in use, the fewer one app may use (`slotLimitAt`). */
const TOTAL_SLOTS_FACTOR = 4;
/** Maximum number of slots of one app when RUNNER_CONCURRENCY or more slots are in use; 1 for the last RUNNER_CONCURRENCY slots. */
const BUSY_SLOTS_PER_APP_MAX = 2;

export interface Slot {
  /** 0 for an ordinary run. A nested run is one level above the run that waits for it. */
  readonly level: number;
  /** Frees the slot. A second call has no effect. */
  free(): void;
}

/** A slot that is reserved while the database selects the run that will use it. */
export interface ReservedSlot {
  readonly slotLimitOfApp: number;
  assignToApp(appId: number): Slot;
  free(): void;
}

export class Slots {
  readonly totalSlots: number;
  private readonly idleSlotLimitOfApp: number;
  private readonly countByApp = new Map<number, number>();
  /** One semaphore per nesting level. A run waits only for runs of the next level, so the runs of a chain cannot block each other. */
  private readonly nested: readonly FairSemaphore[];
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
    const perApp = (level: number) => (level === 0 ? this.idleSlotLimitOfApp : 1);
    this.nested = Array.from(
      { length: RUN_CHAIN_DEPTH_MAX },
      (_, level) => new FairSemaphore(Number.POSITIVE_INFINITY, perApp(level)),
    );
  }

  /** Returns how many slots one app may use. The last slots remain for apps that have none. */
  private slotLimitAt(usedCount: number): number {
    if (usedCount < this.runnerConcurrency) return this.idleSlotLimitOfApp;
    return usedCount < this.totalSlots - this.runnerConcurrency
      ? Math.min(this.idleSlotLimitOfApp, BUSY_SLOTS_PER_APP_MAX)
      : 1;
  }

  private usedSlotsOf(appId: number): number {
    return this.countByApp.get(appId) ?? 0;
  }

  private createSlot(level: number, onRelease: () => void): Slot {
    let isFree = false;
    return {
      level,
      free: () => {
        if (isFree) return;
        isFree = true;
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
    this.countByApp.set(appId, this.usedSlotsOf(appId) + 1);
    return this.createSlot(0, () => {
      this.usedCount -= 1;
      if (this.usedSlotsOf(appId) === 1) this.countByApp.delete(appId);
      else this.countByApp.set(appId, this.usedSlotsOf(appId) - 1);
    });
  }

  private createNestedSlot(level: number, releaseSlot: () => void): Slot {
    this.nestedCount += 1;
    return this.createSlot(level, () => {
      this.nestedCount -= 1;
      releaseSlot();
    });
  }

  /** Returns a slot for a run of the app; null if no slot is free or the app uses its maximum. */
  tryAcquire(appId: number): Slot | null {
    // Counts reserved slots too, because each may be assigned to this app.
    const isAtShare = this.usedSlotsOf(appId) + this.reservedCount >= this.currentShare();
    return isAtShare ? null : (this.reserve()?.assignToApp(appId) ?? null);
  }

  /** True if the app could get a slot after all reserved slots became free. */
  canAcquire(appId: number): boolean {
    const assigned = this.usedCount - this.reservedCount;
    return assigned < this.totalSlots && this.usedSlotsOf(appId) < this.slotLimitAt(assigned);
  }

  /** Reserves a slot for the run that the database will select; null if no slot is free. */
  reserve(): ReservedSlot | null {
    if (this.usedCount >= this.totalSlots) return null;
    const share = this.currentShare();
    this.usedCount += 1;
    this.reservedCount += 1;
    return {
      slotLimitOfApp: share,
      assignToApp: (appId) => this.createAppSlot(appId),
      free: () => {
        this.reservedCount -= 1;
        this.usedCount -= 1;
        this.resolveIfEmpty();
      },
    };
  }

  /** Returns a nested slot for a run that the run in the slot `parent` waits for; null if the app uses its maximum at this level. */
  tryAcquireNested(appId: number, parent: Slot): Slot | null {
    const freeSlot = this.nested[parent.level]?.tryEnter(appId);
    return freeSlot ? this.createNestedSlot(parent.level + 1, freeSlot) : null;
  }

  /** Waits for a nested slot. Rejects if the chain of runs has more levels than allowed. */
  async acquireNested(appId: number, parent: Slot): Promise<Slot> {
    return this.createNestedSlot(parent.level + 1, await this.nested[parent.level]!.enter(appId));
  }

  currentShare(): number {
    return this.slotLimitAt(this.usedCount);
  }

  freeCount(): number {
    return this.totalSlots - this.usedCount;
  }

  /** Number of slots that each app uses, without nested slots. */
  perApp(): ReadonlyMap<number, number> {
    return this.countByApp;
  }

  /** True if an app uses as many slots as it may, so that its queued runs wait although slots are free. */
  isAnyAppAtLimit(): boolean {
    return [...this.countByApp.values()].some((count) => count >= this.currentShare());
  }

  async whenEmpty(): Promise<void> {
    if (this.usedCount + this.nestedCount > 0) await new Promise<void>((resolve) => this.emptyListeners.push(resolve));
  }
}
