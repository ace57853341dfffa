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
/** Code sees how long its requests take: they are not held for longer than a busy database may take. */
const HELD_MAX_MS = 50;
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
      else if (lines.length <= LINES_MAX && lines.push(line) > LINES_MAX) end();
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
 * @param onGivenUp told where it waited for too long, printed more than may wait, or ended without what it had asked for: the run begins anew
 */
export function beginHeld(
  request: PageRun,
  run: (request: PageRun) => Promise<PageOutcome>,
  onGivenUp: () => void,
): BegunRun {
  const { mayRequest, ...rest } = request;
  const taken = Promise.withResolvers<PageRun | null>();
  const ending = new AbortController();
  const end = () => ending.abort();
  let taker: PageRun | null = null;
  let asked: NodeJS.Timeout | null = null;
  let over = false;
  let dropped: Promise<void> | null = null;

  function drop(): Promise<void> {
    taken.resolve(null);
    dropped ??= endSoon(outcome, end);
    return dropped;
  }
  function giveUp(): void {
    if (taker || dropped) return;
    onGivenUp();
    void drop();
  }
  function whoTakesIt(): Promise<PageRun | null> {
    if (!taker) asked ??= setTimeout(giveUp, HELD_MAX_MS);
    return taken.promise;
  }

  const lines = createWaitingLines(giveUp);
  const late = setTimeout(giveUp, aheadMs(request.timeoutMs));
  const outcome = run({
    ...rest,
    signal: ending.signal,
    mayLeave: async () => (await request.mayLeave?.()) !== false && (await whoTakesIt()) !== null,
    onConsole: lines.print,
    onHost: (host) => taker?.onHost?.(host),
    ...(mayRequest && {
      mayRequest: async (url: string) => {
        const one = await whoTakesIt();
        return one !== null && (one.mayRequest?.(url) ?? true);
      },
      onRequest: (one) => taker?.onRequest?.(one) ?? null,
    }),
  }).finally(() => {
    over = true;
    clearTimeout(late);
    clearTimeout(asked ?? undefined);
  });

  /** What ended by itself may have ended for want of what it had asked for. */
  async function endedOtherwise(): Promise<boolean> {
    if (!over) return false;
    const ended = await outcome;
    return asked !== null || (!ended.ok && BEGUN_ANEW.includes(ended.cause));
  }

  return {
    realm: "fetch",
    async take(one) {
      if (await endedOtherwise()) giveUp();
      if (dropped) {
        await dropped;
        return null;
      }
      clearTimeout(late);
      clearTimeout(asked ?? undefined);
      taker = one;
      if (one.signal?.aborted) end();
      one.signal?.addEventListener("abort", end, { once: true });
      lines.passTo(one.onConsole);
      taken.resolve(one);
      return outcome.finally(() => one.signal?.removeEventListener("abort", end));
    },
    drop,
  };
}
