/**
 * What is begun of a run before anybody may hear of it. Of one in a realm with `fetch` whatever it asks for waits at its page's way out, and
 * what it prints waits here, until somebody takes it. Knows not what they wait for.
 */
import type { BegunRun, ConsoleLine, FailureCause, PageOutcome, PageRun } from "./run.js";

/** It is nobody's for so long at most, or for such a part of its limit. */
const AHEAD_MAX_MS = 1_000;
const AHEAD_MAX_PART = 1 / 4;
/** Nobody sees what is printed meanwhile: who prints more is begun anew, and watched. */
const LINES_MAX = 500;
/** What nobody takes may come to its end by itself within this: else its page goes with it, and another takes ten times as long to make. */
const GRACE_MS = 50;
/** Ends that say nothing of the code where nobody had taken it. */
const BEGUN_ANEW: readonly FailureCause[] = ["timeout", "browser", "cancelled"];

/** How long what is begun so may go on by itself. */
export const aheadMs = (timeoutMs: number): number => Math.min(AHEAD_MAX_MS, timeoutMs * AHEAD_MAX_PART);

/** Ends what nobody takes, unless it comes to its end first. Resolves with the first of these. */
export function endSoon(outcome: Promise<unknown>, end: () => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      end();
      resolve();
    }, GRACE_MS);
    void outcome.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** @param end called where more is printed than may wait */
export function createWaitingLines(end: () => void) {
  const lines: ConsoleLine[] = [];
  let hear: PageRun["onConsole"];
  return {
    print(line: ConsoleLine): void {
      if (hear) hear(line);
      else if (lines.push(line) > LINES_MAX) end();
    },
    tooMany: (): boolean => lines.length > LINES_MAX,
    /** Those that wait, and each from here on. */
    passTo(onConsole: PageRun["onConsole"] = () => {}): void {
      hear = onConsole;
      for (const line of lines) hear(line);
    },
  };
}

/**
 * Begins it where its requests wait for who takes it.
 * @param request as of `Browsers.beginAhead`
 * @param run what runs it there
 */
export function beginHeld(request: PageRun, run: (request: PageRun) => Promise<PageOutcome>): BegunRun {
  const { mayRequest, ...rest } = request;
  const taken = Promise.withResolvers<PageRun | null>();
  const ending = new AbortController();
  const end = () => ending.abort();
  const lines = createWaitingLines(end);
  const late = setTimeout(end, aheadMs(request.timeoutMs));
  let taker: PageRun | null = null;
  let over = false;
  const outcome = run({
    ...rest,
    signal: ending.signal,
    mayLeave: taken.promise.then((one) => one !== null),
    onConsole: lines.print,
    onHost: (host) => taker?.onHost?.(host),
    ...(mayRequest && {
      mayRequest: async (url: string) => {
        const one = await taken.promise;
        return one !== null && (one.mayRequest?.(url) ?? true);
      },
      onRequest: (one) => taker?.onRequest?.(one) ?? null,
    }),
  }).finally(() => {
    over = true;
    clearTimeout(late);
  });

  async function isToBeginAnew(): Promise<boolean> {
    if (!over) return ending.signal.aborted;
    const ended = await outcome;
    return !ended.ok && BEGUN_ANEW.includes(ended.cause);
  }

  return {
    realm: "fetch",
    async take(one) {
      clearTimeout(late);
      if (await isToBeginAnew()) return null;
      taker = one;
      lines.passTo(one.onConsole);
      taken.resolve(one);
      if (one.signal?.aborted) end();
      one.signal?.addEventListener("abort", end, { once: true });
      return outcome.finally(() => one.signal?.removeEventListener("abort", end));
    },
    drop() {
      taken.resolve(null);
      return endSoon(outcome, end);
    },
  };
}
