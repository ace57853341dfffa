/**
 * The pages of one browser. Opens contexts in advance, and keeps the page of a key for its next run: the page is reset right after a run, or
 * replaced by one in a new context. A context never serves two keys.
 */

import { setTimeout as delay } from "node:timers/promises";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import type { Lane } from "../network/lane.js";
import type { Mode } from "../run.js";
import { PAUSE_MS } from "./harness.js";
import type { Loss } from "./loss.js";
import { Page } from "./page.js";

/** Maximum runs of one page. High, since memory does not grow with runs, and a new renderer is slow until its code is compiled. */
const RUNS_PER_PAGE = 10_000;
const OPEN_ATTEMPTS = 3;
/** A key's additional pages, for overlapping runs, are discarded when they have been idle this long. */
const SURPLUS_IDLE_MS = 10_000;
/** Usual duration of a reset, unless the machine is very busy. */
const RENEWED_MS = 20;
/** Maximum time for which the opening of a context holds its turn. It usually takes a tenth of this. */
const OPENING_MAX_MS = 500;
/** Delay before an origin gets a new page after one of its runs exceeded the memory limit. */
const REST_MS = 1_000;
/** Number of waiting openings from which the pages in use get more time. Ordinary load rarely reaches it. */
const CROWD = 4;
/** Key of the turns for contexts that are opened in advance. */
const AHEAD = "ahead";

/** Queue for opening contexts and documents, in which origins take turns. */
export interface Openings {
  /** Waits for a turn. @returns a function that ends it */
  enter(origin: string): Promise<() => void>;
}

export interface PoolOptions {
  chromium: Chromium;
  /** Returns the cause of a crash that is reported now, if it is known. */
  crashCause: () => Loss | null;
  openLane: (() => Promise<Lane>) | null;
  openings: Openings;
  /** Number of contexts that are opened in advance. */
  spares: number;
  /** Maximum idle pages over all keys, 20 to 45 MB each. The least recently used page of the origin with most pages is discarded first. */
  warmPages: number;
}

/** The use of a page: `key` combines the isolation key, the origin and the mode. */
export interface Slot {
  key: string;
  origin: string;
  mode: Mode;
}

/** The pages of one slot that are not executing a run. */
interface Shelf {
  origin: string;
  idle: Page[];
  renewing: number;
  /** Ends the delay before a reset, for each page that is delayed. */
  pausing: (() => void)[];
  /** Waiting callers. Each returns true if it uses the page. */
  waiting: ((page: Page | null) => boolean)[];
}

/** The first item of the origin with most items, so that no origin loses its only page to one with many. */
export function leastWanted<T>(oldestFirst: Iterable<T>, originOf: (one: T) => string): T {
  const byOrigin = [...Map.groupBy(oldestFirst, originOf).values()];
  return byOrigin.reduce((most, one) => (one.length > most.length ? one : most))[0]!;
}

export class Pool {
  private readonly shelves = new Map<string, Shelf>();
  private readonly idleInOrder = new Map<Page, Shelf>();
  private readonly idleSince = new WeakMap<Page, number>();
  private readonly spare: Page[] = [];
  private filling: Promise<void> | null = null;
  private retired = false;

  private readonly pages = new Set<Page>();
  private readonly resting = new Map<string, Promise<void>>();
  private turnsAwaited = 0;

  constructor(private readonly options: PoolOptions) {
    runInBackground(
      options.chromium.ended.then(() => {
        for (const page of this.pages) page.lose("browser");
      }),
    );
  }

  /** A page with a fresh sandbox for the slot. Rejects if the browser cannot make one. */
  async acquire(slot: Slot): Promise<Page> {
    const { key } = slot;
    const shelf = this.shelfOf(slot);
    const page = this.takeIdle(shelf) ?? (await this.takeRenewed(shelf));
    if (page?.ready) {
      this.forgetIfEmpty(key, shelf);
      return page;
    }
    this.forgetIfEmpty(key, shelf);
    const own = this.shelfOf(slot);
    const first = await this.takeReturned(own);
    this.forgetIfEmpty(key, own);
    if (first instanceof Page) return first;
    return this.within(first, this.takeNew(slot));
  }

  /** Waits for the turn to open a page. @returns a function that ends it */
  private async turn(origin: string): Promise<() => void> {
    await this.resting.get(origin);
    this.turnsAwaited += 1;
    try {
      return await this.options.openings.enter(origin);
    } finally {
      this.turnsAwaited -= 1;
    }
  }

  /** Ends the turn after the work, or after a time limit. If many wait, the next turn starts as much later, so that existing pages are served. */
  private async within<T>(leave: () => void, work: Promise<T>): Promise<T> {
    const begun = performance.now();
    const late = setTimeout(leave, OPENING_MAX_MS);
    try {
      return await work;
    } finally {
      clearTimeout(late);
      if (this.turnsAwaited < CROWD) leave();
      else setTimeout(leave, Math.min(OPENING_MAX_MS, performance.now() - begun));
    }
  }

  /** Waits for a page that another run of the key returns, or for the turn to open one. */
  private takeReturned(shelf: Shelf): Promise<Page | (() => void)> {
    return new Promise((resolve, reject) => {
      let settled = false;
      const take = (page: Page | null) => {
        if (!page?.ready || settled) return false;
        settled = true;
        resolve(page);
        return true;
      };
      shelf.waiting.push(take);
      this.turn(shelf.origin).then((leave) => {
        if (settled) return leave();
        settled = true;
        shelf.waiting = shelf.waiting.filter((one) => one !== take);
        resolve(leave);
      }, reject);
    });
  }

  /** Delays the next new page of an origin whose run exceeded the memory limit, since it might do nothing else. */
  rest(origin: string): void {
    if (this.resting.has(origin)) return;
    const over = delay(REST_MS, undefined, { ref: false }).then(() => {
      this.resting.delete(origin);
    });
    this.resting.set(origin, over);
  }

  /** Returns a page, and prepares the slot's next run: resets the page if it is `intact`, else replaces it. */
  release(page: Page, slot: Slot, intact: boolean): void {
    if (this.retired) this.discard(page);
    else runInBackground(this.restock(page, slot, intact && page.usable && page.runCount < RUNS_PER_PAGE));
  }

  /** Discards all pages that are returned from now on. */
  retire(): void {
    this.retired = true;
  }

  /** Number of idle pages of a key. */
  idle(key: string): number {
    return this.shelves.get(key)?.idle.length ?? 0;
  }

  /** Number of idle pages: with a key, and without one yet. */
  idleCounts(): { warm: number; spare: number } {
    return { warm: this.idleInOrder.size, spare: this.spare.length };
  }

  /** True while a page is open, or being opened, whose renderer has not crashed. */
  readonly hasPages = (): boolean => [...this.pages].some((page) => page.hasRenderer);

  /** Resolves when the contexts that are opened in advance exist. */
  fill(): Promise<void> {
    this.filling ??= this.refill().finally(() => {
      this.filling = null;
    });
    return this.filling;
  }

  private async refill(): Promise<void> {
    for (let failures = 0; this.spare.length < this.options.spares && this.options.chromium.alive(); ) {
      const leave = await this.turn(AHEAD);
      try {
        this.spare.push(await this.within(leave, this.open()));
      } catch (error) {
        failures += 1;
        if (failures >= OPEN_ATTEMPTS) throw error;
      }
    }
  }

  private async open(): Promise<Page> {
    const { chromium, crashCause, openLane } = this.options;
    const lane = openLane === null ? null : await openLane();
    let opening: Page | null = null;
    const add = (page: Page) => {
      opening = page;
      this.pages.add(page);
    };
    try {
      const page = await Page.open(chromium.connection, lane, crashCause, add);
      if (!chromium.alive()) page.lose("browser");
      return page;
    } catch (error) {
      if (opening !== null) this.pages.delete(opening);
      throw error;
    }
  }

  private discard(page: Page): void {
    this.pages.delete(page);
    runInBackground(page.discard());
  }

  private shelfOf({ key, origin }: Slot): Shelf {
    const found = this.shelves.get(key);
    if (found !== undefined) return found;
    const shelf: Shelf = { origin, idle: [], renewing: 0, pausing: [], waiting: [] };
    this.shelves.set(key, shelf);
    return shelf;
  }

  /** Takes the last page whose reset should be complete, so that surplus pages stay idle; else the oldest one. */
  private takeIdle(shelf: Shelf): Page | null {
    const renewed = Date.now() - RENEWED_MS;
    while (shelf.idle.length > 0) {
      const page = shelf.idle.findLast((one) => this.idleSince.get(one)! < renewed) ?? shelf.idle[0]!;
      this.putBy(page, shelf);
      if (page.ready) return page;
      this.discard(page);
    }
    return null;
  }

  private putBy(page: Page, shelf: Shelf): void {
    page.whileIdle(null);
    this.idleInOrder.delete(page);
    shelf.idle.splice(shelf.idle.indexOf(page), 1);
  }

  /** Waits for a page that is being reset, which is faster than a new context, unless others wait for it already. */
  private takeRenewed(shelf: Shelf): Promise<Page | null> {
    if (shelf.renewing <= shelf.waiting.length) return Promise.resolve(null);
    shelf.pausing[0]?.();
    return new Promise((resolve) =>
      shelf.waiting.push((page) => {
        resolve(page);
        return page !== null;
      }),
    );
  }

  private async takeNew({ origin, mode }: Slot): Promise<Page> {
    for (let attempt = 0; attempt < OPEN_ATTEMPTS && this.options.chromium.alive(); attempt += 1) {
      const page = this.spare.shift() ?? (await this.open());
      // Contexts are opened at the next run instead.
      this.fill().catch(() => {});
      if (page.usable && (await page.settle(origin, mode))) return page;
      this.discard(page);
    }
    throw new Error("the browser gave no page");
  }

  /** Delays a reset: on few cores it would delay the end of the last run, for which a caller waits. */
  private pause(shelf: Shelf): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const over = () => {
      clearTimeout(timer);
      shelf.pausing.splice(shelf.pausing.indexOf(over), 1);
      resolve();
    };
    const timer = setTimeout(over, PAUSE_MS);
    shelf.pausing.push(over);
    return promise;
  }

  private async restock(page: Page, slot: Slot, reusable: boolean): Promise<void> {
    const { key } = slot;
    const shelf = this.shelfOf(slot);
    shelf.renewing += 1;
    if (reusable && !page.hurried && shelf.waiting.length === 0) await this.pause(shelf);
    const fresh = reusable && (await page.renew()) ? page : await this.replace(page, slot);
    shelf.renewing -= 1;
    const taken = shelf.waiting.shift()?.(fresh);
    if (fresh !== null && taken !== true) this.keep(fresh, shelf, slot);
    this.forgetIfEmpty(key, shelf);
  }

  private async replace(page: Page, slot: Slot): Promise<Page | null> {
    this.discard(page);
    try {
      return await this.within(await this.turn(slot.origin), this.takeNew(slot));
    } catch {
      return null;
    }
  }

  private keep(page: Page, shelf: Shelf, slot: Slot): void {
    page.whileIdle(() => {
      this.putBy(page, shelf);
      // Code of the last run is active until its page is discarded.
      if (page.loss === "unready") this.release(page, slot, false);
      else this.discard(page);
    });
    const [longest] = shelf.idle;
    if (longest && Date.now() - this.idleSince.get(longest)! > SURPLUS_IDLE_MS) this.drop(longest, shelf);
    shelf.idle.push(page);
    this.idleInOrder.set(page, shelf);
    this.idleSince.set(page, Date.now());
    while (this.idleInOrder.size > this.options.warmPages) {
      const least = leastWanted(this.idleInOrder.keys(), (one) => this.idleInOrder.get(one)!.origin);
      this.drop(least, this.idleInOrder.get(least)!);
    }
  }

  private drop(page: Page, shelf: Shelf): void {
    this.putBy(page, shelf);
    this.discard(page);
  }

  private forgetIfEmpty(key: string, shelf: Shelf): void {
    const isEmpty = shelf.idle.length + shelf.renewing + shelf.waiting.length === 0;
    if (isEmpty && this.shelves.get(key) === shelf) this.shelves.delete(key);
  }
}
