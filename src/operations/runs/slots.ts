/**
 * Slots of a dispatcher: how many runs it executes at once, in total and per app. Runs that other runs wait for use nested slots, so that
 * a run never waits for its own slot.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { CHAIN_DEPTH_MAX } from "../../limits.js";

/** Slots beyond RUNNER_CONCURRENCY, for apps that have few runs: three apps at their limit leave slots for a fourth. */
const FULLNESS = 4;
/** Slots per app once RUNNER_CONCURRENCY slots are taken. */
const SHARE_WHEN_BUSY = 2;

export interface Slot {
  /** 0, or the level of the slot of the run that waits for this one, plus one. */
  readonly level: number;
  /** Frees the slot. A second call has no effect. */
  free(): void;
}

/** A slot that is reserved while the database chooses the run. */
export interface OpenSlot {
  /** Slots that the app may have, including this one. */
  readonly share: number;
  give(appId: number): Slot;
  free(): void;
}

export class Slots {
  readonly total: number;
  private readonly share: number;
  private readonly ofApp = new Map<number, number>();
  /** One semaphore per level: a run waits only for runs of the next level, so that no chain of runs can block itself. */
  private readonly nested: readonly FairSemaphore[];
  private taken = 0;
  private opened = 0;
  private nestedTaken = 0;
  private whenEmpty: (() => void)[] = [];

  /** @param ordinary runs at once while few apps run @param onFree called when a slot is freed */
  constructor(
    private readonly ordinary: number,
    private readonly onFree: () => void,
  ) {
    this.total = ordinary * FULLNESS;
    this.share = Math.max(1, ordinary - 1);
    const perApp = (level: number) => (level === 0 ? this.share : 1);
    this.nested = Array.from(
      { length: CHAIN_DEPTH_MAX },
      (_, level) => new FairSemaphore(Number.POSITIVE_INFINITY, perApp(level)),
    );
  }

  /** Slots that one app may have while so many are taken: the fuller, the fewer. The last slots are for apps that have none. */
  private shareOf(taken: number): number {
    if (taken < this.ordinary) return this.share;
    return taken < this.total - this.ordinary ? Math.min(this.share, SHARE_WHEN_BUSY) : 1;
  }

  private countOf(appId: number): number {
    return this.ofApp.get(appId) ?? 0;
  }

  private slot(level: number, release: () => void): Slot {
    let isFree = false;
    return {
      level,
      free: () => {
        if (isFree) return;
        isFree = true;
        release();
        this.onFree();
        this.resolveEmpty();
      },
    };
  }

  private resolveEmpty(): void {
    if (this.taken + this.nestedTaken > 0) return;
    const emptied = this.whenEmpty;
    this.whenEmpty = [];
    for (const resolve of emptied) resolve();
  }

  private give(appId: number): Slot {
    this.ofApp.set(appId, this.countOf(appId) + 1);
    return this.slot(0, () => {
      this.taken -= 1;
      if (this.countOf(appId) === 1) this.ofApp.delete(appId);
      else this.ofApp.set(appId, this.countOf(appId) - 1);
    });
  }

  private giveNested(level: number, leave: () => void): Slot {
    this.nestedTaken += 1;
    return this.slot(level, () => {
      this.nestedTaken -= 1;
      leave();
    });
  }

  /** A slot for a run of the app; null if none is free or the app has its share. */
  take(appId: number): Slot | null {
    // A slot that is open may become this app's.
    if (this.taken >= this.total || this.countOf(appId) + this.opened >= this.shareNow()) return null;
    this.taken += 1;
    return this.give(appId);
  }

  /** True if the app can get a slot, provided that open slots become free. */
  allows(appId: number): boolean {
    const taken = this.taken - this.opened;
    return taken < this.total && this.countOf(appId) < this.shareOf(taken);
  }

  /** Reserves a slot for the run that the database chooses; null if none is free. */
  open(): OpenSlot | null {
    if (this.taken >= this.total) return null;
    const share = this.shareNow();
    this.taken += 1;
    this.opened += 1;
    return {
      share,
      give: (appId) => {
        this.opened -= 1;
        return this.give(appId);
      },
      free: () => {
        this.opened -= 1;
        this.taken -= 1;
        this.resolveEmpty();
      },
    };
  }

  /** A nested slot for a run that the run in `parent` waits for; null if the app has its share of that level. */
  takeNested(appId: number, parent: Slot): Slot | null {
    const leave = this.nested[parent.level]?.tryEnter(appId);
    return leave ? this.giveNested(parent.level + 1, leave) : null;
  }

  /** Waits for such a slot. Rejects if chains of runs are longer than they can be. */
  async enterNested(appId: number, parent: Slot): Promise<Slot> {
    return this.giveNested(parent.level + 1, await this.nested[parent.level]!.enter(appId));
  }

  /** Slots that one app may have at present. */
  shareNow(): number {
    return this.shareOf(this.taken);
  }

  free(): number {
    return this.total - this.taken;
  }

  /** Slots that each app has, without nested ones. */
  perApp(): ReadonlyMap<number, number> {
    return this.ofApp;
  }

  /** True if an app has as many slots as it may, so that its queued runs wait although slots are free. */
  isAnyAppAtShare(): boolean {
    return [...this.ofApp.values()].some((count) => count >= this.shareNow());
  }

  /** Resolves when no slot is taken. */
  async empty(): Promise<void> {
    if (this.taken + this.nestedTaken > 0) await new Promise<void>((resolve) => this.whenEmpty.push(resolve));
  }
}
