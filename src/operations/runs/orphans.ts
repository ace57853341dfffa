/**
 * Runs that the ledger says this process holds and that it does not perform. The answer to the statement that took one may have been
 * lost with its connection: nothing ran, and the run goes back to the queue. Or one was performed and its end could not be written: it
 * ends as lost. Knows no place and no page.
 */
import { lostEnding } from "./execution.js";
import type { Ledger } from "./ledger.js";
import type { HeldRun } from "./run-facts.js";

/** A statement under way that may give this process a run. */
type Taking = object;

/** How many runs became what. */
export interface Settlement {
  lost: number;
  queuedAgain: number;
}

export function createOrphans(options: {
  ledger: Pick<Ledger, "orphans" | "end" | "putBack">;
  holder: string;
  /** The runs that this process performs. */
  underWay: ReadonlyMap<number, unknown>;
}) {
  const { ledger, holder, underWay } = options;
  const takings = new Set<Taking>();
  /** Orphans at the last look, with the statements that were under way then: one of them may still bring the run. */
  let suspects = new Map<number, readonly Taking[]>();
  /** Runs that were performed here and whose end could not be written. */
  const unwritten = new Set<number>();

  async function settleOne(run: HeldRun): Promise<keyof Settlement | null> {
    if (unwritten.has(run.id)) {
      const ended = await ledger.end(run.id, holder, lostEnding(run));
      unwritten.delete(run.id);
      return ended ? "lost" : null;
    }
    // Statements that were sent since take queued runs, which this one is not.
    const mayStillCome = suspects.get(run.id)?.some((taking) => takings.has(taking)) ?? true;
    if (mayStillCome || underWay.has(run.id)) return null;
    return (await ledger.putBack(run.id, holder)) ? "queuedAgain" : null;
  }

  return {
    /** The answer of a statement that takes a run, as `use` makes it: whatever it begins has begun when this resolves. */
    async taking<T, R>(asked: Promise<T>, use: (answer: T) => R): Promise<R> {
      const taking = {};
      takings.add(taking);
      try {
        return use(await asked);
      } finally {
        takings.delete(taking);
      }
    },

    /** A run was performed here, and its end could not be written. */
    unwritten(id: number): void {
      unwritten.add(id);
    },

    /** Settles those that were orphans at the last call too, and by no statement under way will be more. To be called from time to time. */
    async settle(): Promise<Settlement> {
      const before = [...unwritten];
      const found = await ledger.orphans(holder, [...underWay.keys()]);
      const ids = new Set(found.map(({ id }) => id));
      // Others may have ended it, by this process's lapsed lease.
      for (const id of before) if (!ids.has(id)) unwritten.delete(id);
      const settlement: Settlement = { lost: 0, queuedAgain: 0 };
      for (const run of found) {
        const became = await settleOne(run);
        if (became !== null) settlement[became] += 1;
      }
      suspects = new Map(found.map(({ id }) => [id, suspects.get(id) ?? [...takings]]));
      return settlement;
    },
  };
}
