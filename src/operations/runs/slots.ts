/**
 * Slots limit how many runs a dispatcher executes at once, in total and for each app. A run that another run waits for
 * uses a nested slot, so that the two runs never block each other.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { CHAIN_DEPTH_MAX } from "../../limits.js";

/**
 * Multiple of RUNNER_CONCURRENCY that is the total number of slots: when three apps use their limit, slots for a fourth
 * remain.
 */
const TOTAL_FACTOR = 4;
/** Maximum number of slots of one app after RUNNER_CONCURRENCY slots are taken. */
const BUSY_SHARE = 2;

export interface Slot {
  /** Nesting level: 0 for ordinary runs; for a nested run, one more than the level of the run that waits for it. */
  readonly level: number;
  /** Frees the slot. A second call has no effect. */
  free(): void;
}

/** A slot that is reserved while the database chooses the run. */
export interface ReservedSlot {
  /** Number of slots that the app may use, including this one. */
  readonly share: number;
  assign(appId: number): Slot;
  free(): void;
}

export class Slots {
  readonly total: number;
  private readonly share: number;
  private readonly countByApp = new Map<number, number>();
  /**
   * One semaphore for each nesting level. A run waits only for runs of the next level, so that no chain of runs can
   * block itself.
   */
  private readonly nested: readonly FairSemaphore[];
  private usedCount = 0;
  private reservedCount = 0;
  private nestedCount = 0;
  private readonly emptyListeners: (() => void)[] = [];

  /** @param runnerConcurrency RUNNER_CONCURRENCY @param onFree called when a slot becomes free */
  constructor(
    private readonly runnerConcurrency: number,
    private readonly onFree: () => void,
  ) {
    this.total = runnerConcurrency * TOTAL_FACTOR;
    this.share = Math.max(1, runnerConcurrency - 1);
    const perApp = (level: number) => (level === 0 ? this.share : 1);
    this.nested = Array.from(
      { length: CHAIN_DEPTH_MAX },
      (_, level) => new FairSemaphore(Number.POSITIVE_INFINITY, perApp(level)),
    );
  }

  /**
   * Returns the number of slots that one app may use. It falls as more slots are taken, so that the last slots are left
   * for apps without one.
   */
  private shareOf(usedCount: number): number {
    if (usedCount < this.runnerConcurrency) return this.share;
    return usedCount < this.total - this.runnerConcurrency ? Math.min(this.share, BUSY_SHARE) : 1;
  }

  private countOf(appId: number): number {
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

  private assign(appId: number): Slot {
    this.reservedCount -= 1;
    this.countByApp.set(appId, this.countOf(appId) + 1);
    return this.createSlot(0, () => {
      this.usedCount -= 1;
      if (this.countOf(appId) === 1) this.countByApp.delete(appId);
      else this.countByApp.set(appId, this.countOf(appId) - 1);
    });
  }

  private createNestedSlot(level: number, releaseSlot: () => void): Slot {
    this.nestedCount += 1;
    return this.createSlot(level, () => {
      this.nestedCount -= 1;
      releaseSlot();
    });
  }

  /** Returns a slot for a run of the app; null if none is free or the app has its share. */
  tryAcquire(appId: number): Slot | null {
    // A reserved slot may be assigned to this app, so it counts.
    const isAtShare = this.countOf(appId) + this.reservedCount >= this.currentShare();
    return isAtShare ? null : (this.reserve()?.assign(appId) ?? null);
  }

  /** True if the app can get a slot, provided that reserved slots become free. */
  canAcquire(appId: number): boolean {
    const assigned = this.usedCount - this.reservedCount;
    return assigned < this.total && this.countOf(appId) < this.shareOf(assigned);
  }

  /** Reserves a slot for the run that the database will choose; null if none is free. */
  reserve(): ReservedSlot | null {
    if (this.usedCount >= this.total) return null;
    const share = this.currentShare();
    this.usedCount += 1;
    this.reservedCount += 1;
    return {
      share,
      assign: (appId) => this.assign(appId),
      free: () => {
        this.reservedCount -= 1;
        this.usedCount -= 1;
        this.resolveIfEmpty();
      },
    };
  }

  /**
   * Returns a nested slot for a run that the run in `parent` waits for; null if the app has its share of that level.
   */
  tryAcquireNested(appId: number, parent: Slot): Slot | null {
    const freeSlot = this.nested[parent.level]?.tryEnter(appId);
    return freeSlot ? this.createNestedSlot(parent.level + 1, freeSlot) : null;
  }

  /** Waits for a nested slot. Rejects if the chain of runs is longer than the limit allows. */
  async acquireNested(appId: number, parent: Slot): Promise<Slot> {
    return this.createNestedSlot(parent.level + 1, await this.nested[parent.level]!.enter(appId));
  }

  /** Returns the number of slots that one app may use now. */
  currentShare(): number {
    return this.shareOf(this.usedCount);
  }

  freeCount(): number {
    return this.total - this.usedCount;
  }

  /** Returns the number of slots that each app uses, without nested ones. */
  perApp(): ReadonlyMap<number, number> {
    return this.countByApp;
  }

  /** True if an app uses all slots that it may use, so that its queued runs wait although slots are free. */
  isAnyAppAtLimit(): boolean {
    return [...this.countByApp.values()].some((count) => count >= this.currentShare());
  }

  /** Resolves when no slot is taken. */
  async whenEmpty(): Promise<void> {
    if (this.usedCount + this.nestedCount > 0) await new Promise<void>((resolve) => this.emptyListeners.push(resolve));
  }
}
