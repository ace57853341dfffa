/** Handles runs that the database assigns to this process but that it does not execute: queues them again, or ends them as lost. */
import { LOST_OUTCOME } from "./outcomes.js";
import type { RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";

interface LostRunCounts {
  lost: number;
  queuedAgain: number;
}

export class LostClaimRecovery {
  private readonly claims = new Set<object>();
  /** Runs that the previous check found, by ID. The values are statements that were in progress at this check and may return the run. */
  private previouslyFoundRuns = new Map<number, readonly object[]>();
  private readonly unwrittenEnds = new Set<number>();

  constructor(
    private readonly repository: Pick<RunRepository, "findUnknownHeld" | "finishWithoutCode" | "returnClaim">,
    private readonly holder: string,
    private readonly active: ReadonlyMap<number, unknown>,
  ) {}

  /** Waits for a statement that may claim a run for this process. `use` receives the result, and must start the run before it returns. */
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

  /** Call this method at intervals. Queues a run again if two calls in succession find it and no statement in progress can return it. */
  async settle(): Promise<LostRunCounts> {
    const unwrittenBefore = [...this.unwrittenEnds];
    const unknownRuns = await this.repository.findUnknownHeld(this.holder, [...this.active.keys()]);
    const ids = new Set(unknownRuns.map(({ id }) => id));
    // Another process may have ended the run, because the lease of this process had expired.
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
      const isEnded = await this.repository.finishWithoutCode(run, this.holder, LOST_OUTCOME);
      this.unwrittenEnds.delete(run.id);
      return isEnded ? "lost" : null;
    }
    // The run was already claimed at the previous check, so statements that started later cannot return it.
    const mayStillCome = this.previouslyFoundRuns.get(run.id)?.some((claim) => this.claims.has(claim)) ?? true;
    if (mayStillCome || this.active.has(run.id)) return null;
    return (await this.repository.returnClaim(run.id, this.holder)) ? "queuedAgain" : null;
  }
}
