/**
 * What this process performs: whose run is next, and each run to its end. Takes from the ledger's queue and from the callers who wait
 * here, in turn. Knows places and holders, not pages, and no caller's right.
 */
import { runInBackground } from "../../background.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { Cancellation } from "./execution.js";
import type { Ledger } from "./ledger.js";
import { createOrphans, type Settlement } from "./orphans.js";
import { createPlaces, type Place } from "./places.js";
import type { HeldRun } from "./run-facts.js";
import { createWaitingCallers, stoppingError } from "./waiting-callers.js";

/** A run that this process performs. */
interface UnderWay {
  controller: AbortController;
  done: Promise<RunOutcome>;
  place: Place;
}

/** A large result costs the one thread that serves everybody: its place stays taken for so long, and its app's next runs come later. */
const REST_MS_PER_MB = 150;
const REST_FROM_BYTES = 1024 * 1024;

function restOf(outcome: RunOutcome): number {
  const bytes = outcome.ok ? (outcome.data?.length ?? 0) : 0;
  return bytes < REST_FROM_BYTES ? 0 : (bytes / 2 ** 20) * REST_MS_PER_MB;
}

function freeAfter(place: Place, ms: number): void {
  if (ms === 0) place.free();
  else setTimeout(place.free, ms);
}

export type Runner = ReturnType<typeof createRunner>;

export function createRunner(options: {
  ledger: Ledger;
  execute: (run: HeldRun, holder: string, signal: AbortSignal) => Promise<RunOutcome>;
  /** The fence of this process. */
  holder: string;
  /** How many runs this process performs at once while few apps run; 0 where it is no runner. */
  concurrency: number;
}) {
  const { ledger, execute, holder, concurrency } = options;
  const places = createPlaces(concurrency, () => {
    serve();
    takeAwaited();
  });
  const callers = createWaitingCallers();
  const underWay = new Map<number, UnderWay>();
  const orphans = createOrphans({ ledger, holder, underWay });
  /** Of runs under way, the queued runs that they wait for. */
  const awaited = new Map<number, Set<number>>();
  /** Set once this process takes no more; its abort ends what still runs. */
  let stopping: AbortSignal | null = null;
  /** A run may be queued that nothing will wake this process for: no place was free, or its app had its share. */
  let behind = false;
  /** Whether one was queued here that the look under way may not have seen. */
  let queuedMeanwhile = false;
  /** Of two apps with as many places, one queued and one waiting here: whose turn it is. */
  let queueFirst = true;
  let turns: Promise<void> | null = null;
  let asked = false;

  function perform(run: HeldRun, place: Place): Promise<RunOutcome> {
    const controller = new AbortController();
    if (stopping?.aborted) controller.abort("shutdown");
    const executed = execute(run, holder, controller.signal).catch((error: unknown) => {
      orphans.unwritten(run.id);
      throw error;
    });
    const done = executed.finally(() => {
      underWay.delete(run.id);
      awaited.delete(run.id);
    });
    done.then(
      (outcome) => freeAfter(place, restOf(outcome)),
      () => place.free(),
    );
    underWay.set(run.id, { controller, done, place });
    return done;
  }

  const serveCaller = (): boolean => callers.serve(places.taken(), places.share(), places.take);

  /** Somebody who waits may have a place now. The queue is looked at where something may be in it. */
  function serve(): void {
    // What is not begun here is found by the next look.
    if (behind) takeTurns().catch(() => undefined);
    else while (!stopping && serveCaller());
  }

  /** Takes the queued run whose turn it is, of apps that have fewer places than that of the next caller here. */
  async function takeQueuedTurn(): Promise<"taken" | "none" | "full"> {
    const open = places.open();
    if (!open) return "full";
    const ofCaller = callers.fewest(places.taken(), open.share);
    const share = ofCaller === null ? open.share : Math.min(open.share, ofCaller + (queueFirst ? 1 : 0));
    const begin = (run: HeldRun | null) => {
      if (run) runInBackground(perform(run, open.give(run.appId)));
      else open.free();
      return run ? "taken" : "none";
    };
    if (share === 0) return begin(null);
    return orphans.taking(ledger.claim(holder, places.taken(), share), begin).catch((error: unknown) => {
      open.free();
      throw error;
    });
  }

  /** Starts the run whose turn it is, queued or asked for here. @returns false when no place is free, or nobody who waits may have it */
  async function takeTurn(): Promise<boolean> {
    if (stopping) return false;
    queuedMeanwhile = false;
    const found = await takeQueuedTurn();
    if (found === "full") behind = true;
    if (found === "taken") queueFirst = false;
    if (found !== "none") return found === "taken";
    queueFirst = true;
    if (serveCaller()) return true;
    const left = places.somebodyHasShare() && (await ledger.anyQueued());
    behind = left || queuedMeanwhile;
    return false;
  }

  /** One claim at a time: the next one knows what the last one took. Who asks meanwhile has the ledger looked at once more. */
  function takeTurns(): Promise<void> {
    const all = async () => {
      try {
        while (asked) {
          asked = false;
          while (await takeTurn());
        }
      } finally {
        // At once: who asks from now on begins anew.
        turns = null;
      }
    };
    asked = true;
    turns ??= all();
    return turns;
  }

  /** Starts runs that runs under way wait for, beside those: else both might wait for ever. */
  function takeAwaited(): void {
    // While the process stops, too: the runs under way can only finish after those that they wait for.
    if (stopping?.aborted) return;
    for (const [parent, children] of awaited) {
      const place = places.beside(underWay.get(parent)!.place);
      if (!place) continue;
      const [child] = children;
      children.delete(child!);
      if (children.size === 0) awaited.delete(parent);
      // Another process may have taken it, or its caller cancelled it.
      const claimed = ledger.claimOne(holder, child!).catch(() => null);
      runInBackground(
        orphans.taking(claimed, (run) => {
          if (run) runInBackground(perform(run, place));
          else place.free();
        }),
      );
    }
  }

  /** A run under way waits for that queued run. */
  function expectRun(parent: number, child: number): void {
    if (!underWay.has(parent)) return;
    awaited.set(parent, (awaited.get(parent) ?? new Set()).add(child));
    takeAwaited();
  }

  function abortAll(): void {
    for (const { controller } of underWay.values()) controller.abort("shutdown");
  }

  return {
    perform,
    expectRun,

    /** Where a run of the app may start at once: a free place, or one beside the run that waits for it. */
    placeFor(appId: number, parent: number | null): Place | null {
      if (stopping?.aborted) return null;
      const above = parent === null ? undefined : underWay.get(parent);
      const free = stopping || callers.has(appId) ? null : places.take(appId);
      return free ?? (above ? places.beside(above.place) : null);
    },

    /**
     * Waits for a place of this process. @returns null where the run is to be queued instead
     * @throws as `WaitingCallers.wait`
     */
    async waitForPlace(appId: number, bytes: number, gone: AbortSignal | undefined): Promise<Place | null> {
      if (places.total === 0) return null;
      if (stopping) throw stoppingError();
      const place = callers.wait(appId, bytes, gone);
      serve();
      return place;
    },

    /** A run of the app was queued, here or by another process. Claims it now if the app has a free slot, else when one is free. */
    expectQueued(appId: number): void {
      behind = true;
      queuedMeanwhile = true;
      if (places.allows(appId)) serve();
    },

    /** Ends the run early, where it is performed here. */
    cancel: (id: number, why: Cancellation): void => underWay.get(id)?.controller.abort(why),

    /** The answer of a statement that gives this process a run, as `use` makes it. */
    taking: orphans.taking,

    /** Settles runs that this process holds and does not perform. To be called from time to time. */
    settleOrphans: (): Promise<Settlement> => orphans.settle(),

    performs: (id: number): boolean => underWay.has(id),

    /**
     * Begins queued runs while places are free, whether or not anything woke this process for them. Answers how long the longest
     * waits, in milliseconds, of those that it could take and did not: above a few seconds something is wrong.
     * @throws what the database throws
     */
    async look(): Promise<number> {
      if (stopping) return 0;
      await takeTurns();
      return places.free() > 0 ? ledger.longestWait(places.taken(), places.share()) : 0;
    },

    /** The places of this process, how many are free, and how many callers wait for one. */
    places: () => ({ total: places.total, free: places.free(), waiting: callers.count() }),

    /** Looks for runs that those under way may wait for, whose notice was lost: to be called from time to time. */
    async lookForAwaited(): Promise<void> {
      if (stopping?.aborted || underWay.size === 0) return;
      for (const { id, causeRunId } of await ledger.queuedBy([...underWay.keys()])) expectRun(causeRunId, id);
    },

    /** Aborts the runs that another process has ended meanwhile: the lease of this one had lapsed. */
    async abandonTaken(): Promise<void> {
      for (const id of await ledger.taken(holder, [...underWay.keys()])) underWay.get(id)?.controller.abort("lost");
    },

    /** Takes no more, lets what runs end, and aborts what is left when `impatience` aborts. */
    async drain(impatience: AbortSignal): Promise<void> {
      stopping = impatience;
      callers.refuseAll();
      impatience.addEventListener("abort", abortAll);
      if (impatience.aborted) abortAll();
      // Places, not held runs: one may be between its row and its page.
      await places.empty();
      impatience.removeEventListener("abort", abortAll);
    },
  };
}
