/** Pages of one browser. After a run, resets the page for the next run with the same key. A browser context never serves two keys. */

import { setTimeout as delay } from "node:timers/promises";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import type { ProxyPort } from "../network/proxy-port.js";
import type { EvaluationMode } from "../run.js";
import type { PageLossReason } from "./loss.js";
import { Page } from "./page.js";

/** High, because runs do not increase a page's memory, and a new renderer is slow until V8 has compiled the code again. */
const RUNS_PER_PAGE = 10_000;
const OPEN_ATTEMPTS_MAX = 3;
/** An idle page that was unused for this time is discarded if its key has other pages: only overlapping runs need several pages. */
const SURPLUS_IDLE_MS = 10_000;
/** Pause between a run and the reset of its page, in which the service can store the run's result and respond. */
const PAUSE_BEFORE_RESET_MS = 8;
/** Maximum time for which a caller that opens a context holds a slot of the queue. */
const OPENING_SLOT_MAX_MS = 500;
/** Delay before an origin may open its next page, after one of its runs exceeded the memory limit. */
const NEW_PAGE_DELAY_MS = 1_000;
/** If at least this many callers wait, the queue pauses after each opening, so that runs with existing pages come first. */
const MANY_WAITING_CALLERS = 4;
export const OPENING_IN_ADVANCE_QUEUE_KEY = "in advance";

/** Queue for opening contexts and documents, in which origins take turns. */
export interface PageOpeningQueue {
  /** Waits for a slot. Returns a function that frees the slot. */
  enter(origin: string): Promise<() => void>;
}

interface PagePoolOptions {
  chromium: Chromium;
  getCrashCause: () => PageLossReason | null;
  openProxyPort: (() => Promise<ProxyPort>) | null;
  openingQueue: PageOpeningQueue;
  spareContexts: number;
  /** Maximum number of idle pages. Above it, the origin with the most idle pages loses the page that has been idle for the longest time. */
  idlePagesMax: number;
}

/** Only runs with the same `key` (isolation key, origin and mode) share a page. */
export interface PageKey {
  key: string;
  origin: string;
  mode: EvaluationMode;
}

interface KeyPages {
  origin: string;
  idle: Page[];
  resettingCount: number;
  endPauseFunctions: (() => void)[];
  /** Each function gets a page after its reset, or null if the page was neither reset nor replaced. Returns true if it uses the page. */
  waitingCallers: ((page: Page | null) => boolean)[];
}

/** Returns the first item of the origin with the most items, so that an origin with many pages does not displace others. */
export function findOldestOfLargestOrigin<T>(oldestFirst: Iterable<T>, originOf: (item: T) => string): T {
  const groups = [...Map.groupBy(oldestFirst, originOf).values()];
  return groups.reduce((largest, group) => (group.length > largest.length ? group : largest))[0]!;
}

export class PagePool {
  private readonly pagesByKey = new Map<string, KeyPages>();
  private readonly idleInOrder = new Map<Page, KeyPages>();
  private readonly idleSince = new WeakMap<Page, number>();
  private readonly sparePages: Page[] = [];
  private fillPromise: Promise<void> | null = null;
  private isRetired = false;

  private readonly pages = new Set<Page>();
  private readonly nextPageDelays = new Map<string, Promise<void>>();
  private waitingForSlotCount = 0;

  constructor(private readonly options: PagePoolOptions) {
    runInBackground(
      options.chromium.ended.then(() => {
        for (const page of this.pages) page.markLost("browser");
      }),
    );
  }

  /** Returns a page whose sandbox is ready for a run. Rejects if the browser cannot open a page. */
  async acquire(pageKey: PageKey): Promise<Page> {
    const pages = this.getKeyPages(pageKey);
    const pageOrSlot = this.findIdle(pages) ?? (await this.waitForPageOrSlot(pages));
    this.deleteIfEmpty(pageKey.key, pages);
    return pageOrSlot instanceof Page ? pageOrSlot : this.releaseSlotAfter(pageOrSlot, this.openPage(pageKey));
  }

  private async waitForOpeningSlot(origin: string): Promise<() => void> {
    await this.nextPageDelays.get(origin);
    this.waitingForSlotCount += 1;
    try {
      return await this.options.openingQueue.enter(origin);
    } finally {
      this.waitingForSlotCount -= 1;
    }
  }

  /** Frees the slot after `work` or OPENING_SLOT_MAX_MS. If many callers wait after `work`, first pauses for as long as `work` took. */
  private async releaseSlotAfter<T>(releaseSlot: () => void, work: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const slotTimer = setTimeout(releaseSlot, OPENING_SLOT_MAX_MS);
    try {
      return await work;
    } finally {
      clearTimeout(slotTimer);
      if (this.waitingForSlotCount < MANY_WAITING_CALLERS) releaseSlot();
      else setTimeout(releaseSlot, Math.min(OPENING_SLOT_MAX_MS, performance.now() - startedAt));
    }
  }

  /** Waits for a page that was reset (faster), or for a slot to open a page. Returns the page, or a function that frees the slot. */
  private waitForPageOrSlot(pages: KeyPages): Promise<Page | (() => void)> {
    const { promise, resolve, reject } = Promise.withResolvers<Page | (() => void)>();
    let isSettled = false;
    const requestSlot = () =>
      this.waitForOpeningSlot(pages.origin).then((releaseSlot) => {
        if (isSettled) return releaseSlot();
        isSettled = true;
        pages.waitingCallers = pages.waitingCallers.filter((caller) => caller !== acceptResetPage);
        resolve(releaseSlot);
      }, reject);
    let isWaitingForReset = pages.resettingCount > pages.waitingCallers.length;
    const acceptResetPage = (page: Page | null): boolean => {
      if (page?.isReady && !isSettled) {
        isSettled = true;
        resolve(page);
        return true;
      }
      if (!isWaitingForReset) return false;
      isWaitingForReset = false;
      pages.waitingCallers.push(acceptResetPage);
      runInBackground(requestSlot());
      return false;
    };
    pages.waitingCallers.push(acceptResetPage);
    if (isWaitingForReset) pages.endPauseFunctions[0]?.();
    else runInBackground(requestSlot());
    return promise;
  }

  /** Called after a run exceeded the memory limit. Without a delay, the runs of this origin would open new pages all the time. */
  delayNextPage(origin: string): void {
    if (this.nextPageDelays.has(origin)) return;
    const pause = delay(NEW_PAGE_DELAY_MS, undefined, { ref: false }).then(() => {
      this.nextPageDelays.delete(origin);
    });
    this.nextPageDelays.set(origin, pause);
  }

  /** Resets a page after a run. Replaces it if it is lost or not intact, or had too many runs. After `retire`, only discards it. */
  release(page: Page, pageKey: PageKey, isIntact: boolean): void {
    if (this.isRetired) this.discard(page);
    else
      runInBackground(this.resetOrReplace(page, pageKey, isIntact && page.isUsable && page.runCount < RUNS_PER_PAGE));
  }

  /** Discards all pages that are released from now on, because the browser is being replaced. */
  retire(): void {
    this.isRetired = true;
  }

  countIdlePages(): { warm: number; spare: number } {
    return { warm: this.idleInOrder.size, spare: this.sparePages.length };
  }

  readonly hasPages = (): boolean => [...this.pages].some((page) => page.hasRenderer);

  fillSparePages(count = this.options.spareContexts): Promise<void> {
    this.fillPromise ??= this.openSparePages(Math.min(count, this.options.spareContexts)).finally(() => {
      this.fillPromise = null;
    });
    return this.fillPromise;
  }

  /** Opens spare pages until there are enough. Ignores errors, because a run without a spare page opens a page itself. */
  fillSparePagesInBackground(): void {
    this.fillSparePages().catch(() => {});
  }

  private async openSparePages(count: number): Promise<void> {
    for (let failures = 0; this.sparePages.length < count && this.options.chromium.isAlive(); ) {
      const releaseSlot = await this.waitForOpeningSlot(OPENING_IN_ADVANCE_QUEUE_KEY);
      try {
        this.sparePages.push(await this.releaseSlotAfter(releaseSlot, this.openBlankPage()));
      } catch (error) {
        failures += 1;
        if (failures >= OPEN_ATTEMPTS_MAX) throw error;
      }
    }
  }

  private async openBlankPage(): Promise<Page> {
    const { chromium, getCrashCause, openProxyPort } = this.options;
    const proxyPort = openProxyPort === null ? null : await openProxyPort();
    const page = new Page(chromium.connection, proxyPort, getCrashCause);
    this.pages.add(page);
    try {
      await page.open();
      return page;
    } catch (error) {
      this.pages.delete(page);
      throw error;
    }
  }

  private discard(page: Page): void {
    this.pages.delete(page);
    runInBackground(page.discard());
  }

  private getKeyPages({ key, origin }: PageKey): KeyPages {
    const keyPages = this.pagesByKey.get(key);
    if (keyPages !== undefined) return keyPages;
    const pages: KeyPages = { origin, idle: [], resettingCount: 0, endPauseFunctions: [], waitingCallers: [] };
    this.pagesByKey.set(key, pages);
    return pages;
  }

  /** Prefers the page that was used last, so that surplus pages stay unused. */
  private findIdle(pages: KeyPages): Page | null {
    while (pages.idle.length > 0) {
      const page = pages.idle.at(-1)!;
      this.removeIdle(page, pages);
      if (page.isReady) return page;
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
    for (let attempt = 0; attempt < OPEN_ATTEMPTS_MAX && this.options.chromium.isAlive(); attempt += 1) {
      const page = this.sparePages.shift() ?? (await this.openBlankPage());
      this.fillSparePagesInBackground();
      if (page.isUsable && (await page.setUp(origin, mode))) return page;
      this.discard(page);
    }
    throw new Error(`the browser has ended, or could not open a page in ${OPEN_ATTEMPTS_MAX} attempts`);
  }

  /** Resolves after PAUSE_BEFORE_RESET_MS, or when a caller needs the page. Without the pause, the reset could delay the run's response. */
  private pauseBeforeReset(pages: KeyPages): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const endPause = () => {
      clearTimeout(timer);
      pages.endPauseFunctions.splice(pages.endPauseFunctions.indexOf(endPause), 1);
      resolve();
    };
    const timer = setTimeout(endPause, PAUSE_BEFORE_RESET_MS);
    pages.endPauseFunctions.push(endPause);
    return promise;
  }

  private async resetOrReplace(page: Page, pageKey: PageKey, isReusable: boolean): Promise<void> {
    const { key } = pageKey;
    const pages = this.getKeyPages(pageKey);
    pages.resettingCount += 1;
    if (isReusable && !page.wasFollowUpRun && pages.waitingCallers.length === 0) await this.pauseBeforeReset(pages);
    const resetPage = isReusable && (await page.resetSandbox()) ? page : await this.replace(page, pageKey);
    pages.resettingCount -= 1;
    const isAccepted = pages.waitingCallers.shift()?.(resetPage);
    if (resetPage !== null && isAccepted !== true) this.storeIdle(resetPage, pages);
    this.deleteIfEmpty(key, pages);
  }

  private async replace(page: Page, pageKey: PageKey): Promise<Page | null> {
    this.discard(page);
    try {
      return await this.releaseSlotAfter(await this.waitForOpeningSlot(pageKey.origin), this.openPage(pageKey));
    } catch {
      return null;
    }
  }

  private storeIdle(page: Page, pages: KeyPages): void {
    page.setIdleLossListener(() => this.discardIdle(page, pages));
    const [longestIdlePage] = pages.idle;
    if (longestIdlePage && Date.now() - this.idleSince.get(longestIdlePage)! > SURPLUS_IDLE_MS)
      this.discardIdle(longestIdlePage, pages);
    pages.idle.push(page);
    this.idleInOrder.set(page, pages);
    this.idleSince.set(page, Date.now());
    while (this.idleInOrder.size > this.options.idlePagesMax) {
      const evictedPage = findOldestOfLargestOrigin(
        this.idleInOrder.keys(),
        (idle) => this.idleInOrder.get(idle)!.origin,
      );
      this.discardIdle(evictedPage, this.idleInOrder.get(evictedPage)!);
    }
  }

  private discardIdle(page: Page, pages: KeyPages): void {
    this.removeIdle(page, pages);
    this.discard(page);
  }

  private deleteIfEmpty(key: string, pages: KeyPages): void {
    const isEmpty = pages.idle.length + pages.resettingCount + pages.waitingCallers.length === 0;
    if (isEmpty && this.pagesByKey.get(key) === pages) this.pagesByKey.delete(key);
  }
}
