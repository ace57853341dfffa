/**
 * Slots of a dispatcher: how many runs it executes at once, in total and per app. Runs that other runs wait for use nested slots, so that
 * a run never waits for its own slot.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { CHAIN_DEPTH_MAX } from "../../limits.js";

/** Slots beyond RUNNER_CONCURRENCY, for apps that have few runs: three apps at their limit leave slots for a fourth. */
const TOTAL_FACTOR = 4;
/** Slots per app once RUNNER_CONCURRENCY slots are taken. */
const BUSY_SHARE = 2;

export interface Slot {
  /** 0, or the level of the slot of the run that waits for this one, plus one. */
  readonly level: number;
  /** Frees the slot. A second call has no effect. */
  free(): void;
}

/** A slot that is reserved while the database chooses the run. */
export interface ReservedSlot {
  /** Slots that the app may have, including this one. */
  readonly share: number;
  assign(appId: number): Slot;
  free(): void;
}

export class Slots {
  readonly total: number;
  private readonly share: number;
  private readonly countByApp = new Map<number, number>();
  /** One semaphore per level: a run waits only for runs of the next level, so that no chain of runs can block itself. */
  private readonly nested: readonly FairSemaphore[];
  private usedCount = 0;
  private reservedCount = 0;
  private nestedCount = 0;
  private readonly emptyListeners: (() => void)[] = [];

  /** @param ordinary runs at once while few apps run @param onFree called when a slot is freed */
  constructor(
    private readonly ordinary: number,
    private readonly onFree: () => void,
  ) {
    this.total = ordinary * TOTAL_FACTOR;
    this.share = Math.max(1, ordinary - 1);
    const perApp = (level: number) => (level === 0 ? this.share : 1);
    this.nested = Array.from(
      { length: CHAIN_DEPTH_MAX },
      (_, level) => new FairSemaphore(Number.POSITIVE_INFINITY, perApp(level)),
    );
  }

  /** Slots that one app may have while so many are taken: the fuller, the fewer. The last slots are for apps that have none. */
  private shareOf(usedCount: number): number {
    if (usedCount < this.ordinary) return this.share;
    return usedCount < this.total - this.ordinary ? Math.min(this.share, BUSY_SHARE) : 1;
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

  /** A slot for a run of the app; null if none is free or the app has its share. */
  tryAcquire(appId: number): Slot | null {
    // A reserved slot may become this app's.
    const isAtShare = this.countOf(appId) + this.reservedCount >= this.currentShare();
    return isAtShare ? null : (this.reserve()?.assign(appId) ?? null);
  }

  /** True if the app can get a slot, provided that reserved slots become free. */
  canAcquire(appId: number): boolean {
    const assigned = this.usedCount - this.reservedCount;
    return assigned < this.total && this.countOf(appId) < this.shareOf(assigned);
  }

  /** Reserves a slot for the run that the database chooses; null if none is free. */
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

  /** A nested slot for a run that the run in `parent` waits for; null if the app has its share of that level. */
  tryAcquireNested(appId: number, parent: Slot): Slot | null {
    const freeSlot = this.nested[parent.level]?.tryEnter(appId);
    return freeSlot ? this.createNestedSlot(parent.level + 1, freeSlot) : null;
  }

  /** Waits for such a slot. Rejects if chains of runs are longer than they can be. */
  async acquireNested(appId: number, parent: Slot): Promise<Slot> {
    return this.createNestedSlot(parent.level + 1, await this.nested[parent.level]!.enter(appId));
  }

  /** Slots that one app may have at present. */
  currentShare(): number {
    return this.shareOf(this.usedCount);
  }

  free(): number {
    return this.total - this.usedCount;
  }

  /** Slots that each app has, without nested ones. */
  perApp(): ReadonlyMap<number, number> {
    return this.countByApp;
  }

  /** True if an app has as many slots as it may, so that its queued runs wait although slots are free. */
  isAnyAppAtLimit(): boolean {
    return [...this.countByApp.values()].some((count) => count >= this.currentShare());
  }

  /** Resolves when no slot is taken. */
  async whenEmpty(): Promise<void> {
    if (this.usedCount + this.nestedCount > 0) await new Promise<void>((resolve) => this.emptyListeners.push(resolve));
  }
}
