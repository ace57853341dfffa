/** Handles runs that, by their database rows, this process holds but does not execute: queues them again, or ends them as lost. */
import { LOST_OUTCOME } from "./outcomes.js";
import type { RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";

interface LostRunCounts {
  lost: number;
  queuedAgain: number;
}

export class LostClaimRecovery {
  private readonly claims = new Set<object>();
  /** For each run that the previous check found: the claims that were in progress when a check first found it. They may return it. */
  private claimsByFoundRun = new Map<number, readonly object[]>();
  private readonly unwrittenEnds = new Set<number>();

  constructor(
    private readonly repository: Pick<RunRepository, "findUnknownHeld" | "finishWithoutCode" | "returnClaim">,
    private readonly holder: string,
    private readonly activeRuns: ReadonlyMap<number, unknown>,
  ) {}

  /** Waits for a statement that may claim a run, and passes its result to `handleResult`, which must start the run before it returns. */
  async trackClaim<T, R>(statement: Promise<T>, handleResult: (result: T) => R): Promise<R> {
    const claim = {};
    this.claims.add(claim);
    try {
      return handleResult(await statement);
    } finally {
      this.claims.delete(claim);
    }
  }

  addUnwrittenEnd(id: number): void {
    this.unwrittenEnds.add(id);
  }

  /** Call this method at intervals. Queues a run again if two calls in succession find it and no statement in progress can return it. */
  async settleLostRuns(): Promise<LostRunCounts> {
    const unwrittenBefore = [...this.unwrittenEnds];
    const unknownRuns = await this.repository.findUnknownHeld(this.holder, [...this.activeRuns.keys()]);
    const ids = new Set(unknownRuns.map(({ id }) => id));
    // Another process may have ended the run, because the lease of this process had expired.
    for (const id of unwrittenBefore) if (!ids.has(id)) this.unwrittenEnds.delete(id);
    const settlement: LostRunCounts = { lost: 0, queuedAgain: 0 };
    for (const run of unknownRuns) {
      const result = await this.settleRun(run);
      if (result !== null) settlement[result] += 1;
    }
    this.claimsByFoundRun = new Map(
      unknownRuns.map(({ id }) => [id, this.claimsByFoundRun.get(id) ?? [...this.claims]]),
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
    const mayStatementReturnRun = this.claimsByFoundRun.get(run.id)?.some((claim) => this.claims.has(claim)) ?? true;
    if (mayStatementReturnRun || this.activeRuns.has(run.id)) return null;
    return (await this.repository.returnClaim(run.id, this.holder)) ? "queuedAgain" : null;
  }
}
