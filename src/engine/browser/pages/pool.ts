/**
 * The pages of one browser. Opens browser contexts in advance. After a run, a page is reset for the next run of the
 * same key, or replaced by one in a new context. A context never serves two keys.
 */

import { setTimeout as delay } from "node:timers/promises";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import type { ProxyPort } from "../network/proxy-port.js";
import type { Mode } from "../run.js";
import { PAUSE_MS } from "./harness.js";
import type { PageLoss } from "./loss.js";
import { Page } from "./page.js";

/**
 * Maximum runs of one page. The number is high, because memory does not grow with runs, and a new renderer is slow until its code is
 * compiled.
 */
const RUNS_PER_PAGE = 10_000;
const OPEN_ATTEMPTS = 3;
/** Time after which a key's additional idle pages for overlapping runs are discarded. */
const SURPLUS_IDLE_MS = 10_000;
/** Usual duration of a reset, unless the machine is very busy. */
const RESET_MS = 20;
/** Maximum time for which the opening of a context holds its turn. It usually takes a tenth of this. */
const OPENING_MAX_MS = 500;
/** Delay before an origin gets a new page after one of its runs exceeded the memory limit. */
const DELAY_MS = 1_000;
/** Number of waiting openings above which existing pages are served first. Ordinary load rarely reaches it. */
const CROWDED_FROM = 4;
/** Key for the turns of contexts that are opened in advance. */
const IN_ADVANCE = "in advance";

/** Queue for opening contexts and documents, in which origins take turns. */
export interface PageOpenings {
  /** Waits for a turn. @returns a function that ends the turn */
  enter(origin: string): Promise<() => void>;
}

export interface PoolOptions {
  chromium: Chromium;
  /** Returns the cause of a crash that is reported now, if known. */
  crashCause: () => PageLoss | null;
  openProxyPort: (() => Promise<ProxyPort>) | null;
  openings: PageOpenings;
  /** Number of contexts that are opened in advance. */
  spares: number;
  /**
   * Maximum idle pages over all keys, 20 to 45 MB each. The least recently used page of the origin with the most pages is discarded first.
   */
  warmPages: number;
}

/** Identifies the use of a page: `key` combines the isolation key, the origin and the mode. */
export interface PageKey {
  key: string;
  origin: string;
  mode: Mode;
}

/** The pages of one key that are not executing a run. */
interface KeyPages {
  origin: string;
  idle: Page[];
  resetting: number;
  /** Functions that end the delay before a reset, one for each page that is delayed. */
  pauses: (() => void)[];
  /** Waiting callers. Each returns true if it uses the page. */
  waiting: ((page: Page | null) => boolean)[];
}

/** Returns the first item of the origin with the most items, so that no origin loses its only page to one with many. */
export function oldestOfLargest<T>(oldestFirst: Iterable<T>, originOf: (item: T) => string): T {
  const groups = [...Map.groupBy(oldestFirst, originOf).values()];
  return groups.reduce((largest, group) => (group.length > largest.length ? group : largest))[0]!;
}

export class Pool {
  private readonly pagesByKey = new Map<string, KeyPages>();
  private readonly idleInOrder = new Map<Page, KeyPages>();
  private readonly idleSince = new WeakMap<Page, number>();
  private readonly spare: Page[] = [];
  private filling: Promise<void> | null = null;
  private isRetired = false;

  private readonly pages = new Set<Page>();
  private readonly delays = new Map<string, Promise<void>>();
  private waitingForTurn = 0;

  constructor(private readonly options: PoolOptions) {
    runInBackground(
      options.chromium.ended.then(() => {
        for (const page of this.pages) page.lose("browser");
      }),
    );
  }

  /** Returns a page with a fresh sandbox for the slot. Rejects if the browser cannot make one. */
  async acquire(slot: PageKey): Promise<Page> {
    const pages = this.pagesOf(slot);
    const idlePage = this.findIdle(pages) ?? (await this.awaitPageOrTurn(pages));
    this.deleteIfEmpty(slot.key, pages);
    return idlePage instanceof Page ? idlePage : this.endTurnAfter(idlePage, this.openPage(slot));
  }

  /** Waits for the turn to open a page. @returns a function that ends it */
  private async waitForTurn(origin: string): Promise<() => void> {
    await this.delays.get(origin);
    this.waitingForTurn += 1;
    try {
      return await this.options.openings.enter(origin);
    } finally {
      this.waitingForTurn -= 1;
    }
  }

  /**
   * Ends the turn after the work, or after a time limit. If many callers wait, the next turn starts later by the same
   * time, so that existing pages are served first.
   */
  private async endTurnAfter<T>(endTurn: () => void, work: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const turnTimer = setTimeout(endTurn, OPENING_MAX_MS);
    try {
      return await work;
    } finally {
      clearTimeout(turnTimer);
      if (this.waitingForTurn < CROWDED_FROM) endTurn();
      else setTimeout(endTurn, Math.min(OPENING_MAX_MS, performance.now() - startedAt));
    }
  }

  /**
   * Waits for a page that a run of the key returns, or for the turn to open one. While a page is being reset for which no other caller waits, it
   * requests no turn, because the reset is faster.
   */
  private awaitPageOrTurn(pages: KeyPages): Promise<Page | (() => void)> {
    const { promise, resolve, reject } = Promise.withResolvers<Page | (() => void)>();
    let isSettled = false;
    const requestTurn = () =>
      this.waitForTurn(pages.origin).then((endTurn) => {
        if (isSettled) return endTurn();
        isSettled = true;
        pages.waiting = pages.waiting.filter((other) => other !== accept);
        resolve(endTurn);
      }, reject);
    let awaitsReset = pages.resetting > pages.waiting.length;
    const accept = (page: Page | null): boolean => {
      if (page?.ready && !isSettled) {
        isSettled = true;
        resolve(page);
        return true;
      }
      if (!awaitsReset) return false;
      awaitsReset = false;
      pages.waiting.push(accept);
      runInBackground(requestTurn());
      return false;
    };
    pages.waiting.push(accept);
    if (awaitsReset) pages.pauses[0]?.();
    else runInBackground(requestTurn());
    return promise;
  }

  /**
   * Delays the next new page of an origin whose run exceeded the memory limit, because the origin could otherwise open pages all the time.
   */
  delayNextPage(origin: string): void {
    if (this.delays.has(origin)) return;
    const over = delay(DELAY_MS, undefined, { ref: false }).then(() => {
      this.delays.delete(origin);
    });
    this.delays.set(origin, over);
  }

  /** Returns a page, and prepares the slot's next run: resets the page if it is `intact`, else replaces it. */
  release(page: Page, slot: PageKey, intact: boolean): void {
    if (this.isRetired) this.discard(page);
    else runInBackground(this.resetOrReplace(page, slot, intact && page.usable && page.runCount < RUNS_PER_PAGE));
  }

  /** Discards all pages that are returned from now on. */
  retire(): void {
    this.isRetired = true;
  }

  /** Returns the number of idle pages of a key. */
  idle(key: string): number {
    return this.pagesByKey.get(key)?.idle.length ?? 0;
  }

  /** Returns the number of idle pages: with a key, and without one yet. */
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
      const endTurn = await this.waitForTurn(IN_ADVANCE);
      try {
        this.spare.push(await this.endTurnAfter(endTurn, this.open()));
      } catch (error) {
        failures += 1;
        if (failures >= OPEN_ATTEMPTS) throw error;
      }
    }
  }

  private async open(): Promise<Page> {
    const { chromium, crashCause, openProxyPort } = this.options;
    const proxyPort = openProxyPort === null ? null : await openProxyPort();
    let opening: Page | null = null;
    const add = (page: Page) => {
      opening = page;
      this.pages.add(page);
    };
    try {
      const page = await Page.open(chromium.connection, proxyPort, crashCause, add);
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

  private pagesOf({ key, origin }: PageKey): KeyPages {
    const keyPages = this.pagesByKey.get(key);
    if (keyPages !== undefined) return keyPages;
    const pages: KeyPages = { origin, idle: [], resetting: 0, pauses: [], waiting: [] };
    this.pagesByKey.set(key, pages);
    return pages;
  }

  /**
   * Returns the page that was used last among those whose reset should be complete, so that surplus pages stay idle;
   * otherwise the oldest page.
   */
  private findIdle(pages: KeyPages): Page | null {
    const resetBefore = Date.now() - RESET_MS;
    while (pages.idle.length > 0) {
      const page = pages.idle.findLast((idle) => this.idleSince.get(idle)! < resetBefore) ?? pages.idle[0]!;
      this.removeIdle(page, pages);
      if (page.ready) return page;
      this.discard(page);
    }
    return null;
  }

  private removeIdle(page: Page, pages: KeyPages): void {
    page.setIdleLossListener(null);
    this.idleInOrder.delete(page);
    pages.idle.splice(pages.idle.indexOf(page), 1);
  }

  private async openPage({ origin, mode }: PageKey): Promise<Page> {
    for (let attempt = 0; attempt < OPEN_ATTEMPTS && this.options.chromium.alive(); attempt += 1) {
      const page = this.spare.shift() ?? (await this.open());
      // Contexts are opened at the next run instead.
      this.fill().catch(() => {});
      if (page.usable && (await page.setUp(origin, mode))) return page;
      this.discard(page);
    }
    throw new Error(`the browser could not open a page in ${OPEN_ATTEMPTS} attempts, or has ended`);
  }

  /** Delays a reset, because on few cores it would delay the response of the last run, for which a caller waits. */
  private pause(pages: KeyPages): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const over = () => {
      clearTimeout(timer);
      pages.pauses.splice(pages.pauses.indexOf(over), 1);
      resolve();
    };
    const timer = setTimeout(over, PAUSE_MS);
    pages.pauses.push(over);
    return promise;
  }

  private async resetOrReplace(page: Page, slot: PageKey, reusable: boolean): Promise<void> {
    const { key } = slot;
    const pages = this.pagesOf(slot);
    pages.resetting += 1;
    if (reusable && !page.followedAtOnce && pages.waiting.length === 0) await this.pause(pages);
    const resetPage = reusable && (await page.resetSandbox()) ? page : await this.replace(page, slot);
    pages.resetting -= 1;
    const isAccepted = pages.waiting.shift()?.(resetPage);
    if (resetPage !== null && isAccepted !== true) this.storeIdle(resetPage, pages, slot);
    this.deleteIfEmpty(key, pages);
  }

  private async replace(page: Page, slot: PageKey): Promise<Page | null> {
    this.discard(page);
    try {
      return await this.endTurnAfter(await this.waitForTurn(slot.origin), this.openPage(slot));
    } catch {
      return null;
    }
  }

  private storeIdle(page: Page, pages: KeyPages, slot: PageKey): void {
    page.setIdleLossListener(() => {
      this.removeIdle(page, pages);
      // Code of the last run is active until its page is discarded.
      if (page.loss === "unready") this.release(page, slot, false);
      else this.discard(page);
    });
    const [longest] = pages.idle;
    if (longest && Date.now() - this.idleSince.get(longest)! > SURPLUS_IDLE_MS) this.discardIdle(longest, pages);
    pages.idle.push(page);
    this.idleInOrder.set(page, pages);
    this.idleSince.set(page, Date.now());
    while (this.idleInOrder.size > this.options.warmPages) {
      const evictedPage = oldestOfLargest(this.idleInOrder.keys(), (idle) => this.idleInOrder.get(idle)!.origin);
      this.discardIdle(evictedPage, this.idleInOrder.get(evictedPage)!);
    }
  }

  private discardIdle(page: Page, pages: KeyPages): void {
    this.removeIdle(page, pages);
    this.discard(page);
  }

  private deleteIfEmpty(key: string, pages: KeyPages): void {
    const isEmpty = pages.idle.length + pages.resetting + pages.waiting.length === 0;
    if (isEmpty && this.pagesByKey.get(key) === pages) this.pagesByKey.delete(key);
  }
}
