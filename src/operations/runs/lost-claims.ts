/**
 * Settles runs that this process holds by their rows but does not execute. If the response to the claim was lost, the
 * run is queued again, because nothing was executed. If the run was executed but its end was not written, it ends as
 * lost.
 */
import { lostEnding } from "./outcomes.js";
import type { RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";

/** Numbers of runs that were ended as lost or queued again. */
export interface SettledCounts {
  lost: number;
  queuedAgain: number;
}

export class LostClaims {
  /** Statements in progress that may assign a run to this process. */
  private readonly claims = new Set<object>();
  /**
   * Runs that the previous check found, each with the claim statements that were in progress. Such a statement may
   * still return the run.
   */
  private candidates = new Map<number, readonly object[]>();
  /** Runs that were executed here and whose end could not be written. */
  private readonly unwrittenEnds = new Set<number>();

  constructor(
    private readonly repository: Pick<RunRepository, "findUnknownHeld" | "finish" | "returnClaim" | "maskedPayload">,
    private readonly holder: string,
    /** The runs that this process executes, by ID. */
    private readonly active: ReadonlyMap<number, unknown>,
  ) {}

  /**
   * Awaits a statement that may assign a run to this process, and passes the result to `use`, which starts the run
   * before it returns.
   */
  async track<T, R>(answer: Promise<T>, use: (answer: T) => R): Promise<R> {
    const claim = {};
    this.claims.add(claim);
    try {
      return use(await answer);
    } finally {
      this.claims.delete(claim);
    }
  }

  /** Adds a run that was executed here and whose end could not be written. */
  addUnwrittenEnd(id: number): void {
    this.unwrittenEnds.add(id);
  }

  /**
   * Settles runs that the previous check also found and that no statement in progress can return. Call it at intervals.
   */
  async settle(): Promise<SettledCounts> {
    const unwrittenBefore = [...this.unwrittenEnds];
    const unknownRuns = await this.repository.findUnknownHeld(this.holder, [...this.active.keys()]);
    const ids = new Set(unknownRuns.map(({ id }) => id));
    // After this process's lease has expired, another process may have ended the run.
    for (const id of unwrittenBefore) if (!ids.has(id)) this.unwrittenEnds.delete(id);
    const settlement: SettledCounts = { lost: 0, queuedAgain: 0 };
    for (const run of unknownRuns) {
      const result = await this.settleRun(run);
      if (result !== null) settlement[result] += 1;
    }
    this.candidates = new Map(unknownRuns.map(({ id }) => [id, this.candidates.get(id) ?? [...this.claims]]));
    return settlement;
  }

  private async settleRun(run: RunRecord): Promise<keyof SettledCounts | null> {
    if (this.unwrittenEnds.has(run.id)) {
      const ending = lostEnding(run, await this.repository.maskedPayload(run));
      const isEnded = await this.repository.finish(run.id, this.holder, ending);
      this.unwrittenEnds.delete(run.id);
      return isEnded ? "lost" : null;
    }
    // Later claims cannot return the run, because it is not queued.
    const mayStillCome = this.candidates.get(run.id)?.some((claim) => this.claims.has(claim)) ?? true;
    if (mayStillCome || this.active.has(run.id)) return null;
    return (await this.repository.returnClaim(run.id, this.holder)) ? "queuedAgain" : null;
  }
}
