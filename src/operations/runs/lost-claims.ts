/**
 * Handles runs whose rows name this process but which it does not execute. If the database's response to the claim was lost, the run is
 * queued again. If the run's outcome could not be written, the run ends as lost.
 */
import { createLostRunEndRecord } from "./outcomes.js";
import type { RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";

/** Number of runs that ended as lost, and number of runs that were queued again. */
export interface LostRunCounts {
  lost: number;
  queuedAgain: number;
}

export class LostClaimRecovery {
  /** Statements in progress that may assign a run to this process. */
  private readonly claims = new Set<object>();
  /** Runs that the previous check found, by ID, with the statements that were in progress then and may still return the run. */
  private previouslyFoundRuns = new Map<number, readonly object[]>();
  /** IDs of runs that this process executed but whose outcome it could not write. */
  private readonly unwrittenEnds = new Set<number>();

  constructor(
    private readonly repository: Pick<RunRepository, "findUnknownHeld" | "finish" | "returnClaim" | "maskedPayload">,
    private readonly holder: string,
    private readonly active: ReadonlyMap<number, unknown>,
  ) {}

  /** Waits for a statement that may assign a run to this process. `use` receives its result, and starts the run before it returns. */
  async track<T, R>(answer: Promise<T>, use: (answer: T) => R): Promise<R> {
    const claim = {};
    this.claims.add(claim);
    try {
      return use(await answer);
    } finally {
      this.claims.delete(claim);
    }
  }

  addUnwrittenEnd(id: number): void {
    this.unwrittenEnds.add(id);
  }

  /**
   * Ends runs whose outcome could not be written. Queues the others again if the previous check found them too and no statement in progress
   * can still return them. Call this method at intervals.
   */
  async settle(): Promise<LostRunCounts> {
    const unwrittenBefore = [...this.unwrittenEnds];
    const unknownRuns = await this.repository.findUnknownHeld(this.holder, [...this.active.keys()]);
    const ids = new Set(unknownRuns.map(({ id }) => id));
    // Another process may have ended the run after the lease of this process had expired.
    for (const id of unwrittenBefore) if (!ids.has(id)) this.unwrittenEnds.delete(id);
    const settlement: LostRunCounts = { lost: 0, queuedAgain: 0 };
    for (const run of unknownRuns) {
      const result = await this.settleRun(run);
      if (result !== null) settlement[result] += 1;
    }
    this.previouslyFoundRuns = new Map(
      unknownRuns.map(({ id }) => [id, this.previouslyFoundRuns.get(id) ?? [...this.claims]]),
    );
    return settlement;
  }

  private async settleRun(run: RunRecord): Promise<keyof LostRunCounts | null> {
    if (this.unwrittenEnds.has(run.id)) {
      const ending = createLostRunEndRecord(run, await this.repository.maskedPayload(run));
      const isEnded = await this.repository.finish(run.id, this.holder, ending);
      this.unwrittenEnds.delete(run.id);
      return isEnded ? "lost" : null;
    }
    // Statements that started after the previous check cannot return this run, because it is not queued.
    const mayStillCome = this.previouslyFoundRuns.get(run.id)?.some((claim) => this.claims.has(claim)) ?? true;
    if (mayStillCome || this.active.has(run.id)) return null;
    return (await this.repository.returnClaim(run.id, this.holder)) ? "queuedAgain" : null;
  }
}
