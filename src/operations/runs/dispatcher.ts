/** Claims queued runs while slots are free, and executes each run until it ends. */
import { EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { runInBackground } from "../../background.js";
import type { RunOutcome } from "../records/execution-logs.js";
import { createCancelledRunOutcome, LOST_OUTCOME, SERVICE_STOPPED_OUTCOME } from "./outcomes.js";
import type { RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";
import { type Slot, Slots } from "./slots.js";

interface ActiveRun {
  appId: number;
  controller: AbortController;
  done: Promise<RunOutcome>;
  slot: Slot;
}

/** Interval at which a stopping process checks whether all its runs have ended. */
const DRAIN_POLL_MS = 20;

interface DispatcherOptions {
  repository: RunRepository;
  /** Executes a claimed run. If the signal aborts, its reason is the outcome of the run. */
  executeRun: (run: RunRecord, holder: string, signal: AbortSignal) => Promise<RunOutcome>;
  processId: string;
  /** Value of RUNNER_CONCURRENCY; 0 if this process does not have the role runner. */
  concurrency: number;
}

export class Dispatcher {
  private readonly slots: Slots;
  private readonly activeRuns = new Map<number, ActiveRun>();
  /** Statements in progress that may claim a run for this process. */
  private readonly claims = new Set<object>();
  /** Key: ID of a run that this process holds but does not execute. Value: claims in progress when `settleHeldRuns` first found it. */
  private claimsByUnknownRun = new Map<number, readonly object[]>();
  /** IDs of queued runs that active runs wait for. Each of these queued runs gets an additional (nested) slot. */
  private readonly awaitedRuns = new Set<number>();
  /** Emits a promise of a run's outcome when this process starts the run. The name of the event is the run's ID. */
  private readonly starts = new EventEmitter().setMaxListeners(0);
  /** Null until this process begins to stop. When this signal aborts, this process ends its active runs. */
  private stopping: AbortSignal | null = null;
  /** True if the queue may contain runs that this process did not claim, for example because no slot was free for them. */
  private mustCheckQueue = false;
  /** Apps for which runs were queued during the current claim. The claim may have missed these runs. */
  private readonly queuedDuringClaim = new Set<number>();
  private claimInProgress: Promise<void> | null = null;
  private isClaimRequested = false;

  constructor(private readonly options: DispatcherOptions) {
    this.slots = new Slots(options.concurrency, () => this.claimMissedRuns());
  }

  /** Executes a claimed run, and frees its slot afterwards. @throws the errors of `RunExecution.execute` */
  execute(run: RunRecord, slot: Slot): Promise<RunOutcome> {
    const controller = new AbortController();
    if (this.stopping?.aborted) controller.abort(SERVICE_STOPPED_OUTCOME);
    const { executeRun, processId } = this.options;
    // A run whose end could not be written stays active, so that this process does not queue it again: its code was executed.
    const done = executeRun(run, processId, controller.signal)
      .then((outcome) => {
        this.activeRuns.delete(run.id);
        return outcome;
      })
      .finally(() => slot.free());
    this.activeRuns.set(run.id, { appId: run.appId, controller, done, slot });
    this.starts.emit(String(run.id), done);
    return done;
  }

  /** Calls `listener` when this process starts the run, or at once if the run is active. The returned function removes the listener. */
  addStartListener(runId: number, listener: (done: Promise<RunOutcome>) => void): () => void {
    const activeRun = this.activeRuns.get(runId);
    if (activeRun) listener(activeRun.done);
    this.starts.on(String(runId), listener);
    return () => this.starts.off(String(runId), listener);
  }

  /** Passes the result of a statement that may claim a run to `handleResult`. `handleResult` must start the run before it returns. */
  async trackClaim<T, R>(statement: Promise<T>, handleResult: (result: T) => R): Promise<R> {
    const claim = {};
    this.claims.add(claim);
    try {
      return handleResult(await statement);
    } finally {
      this.claims.delete(claim);
    }
  }

  private claimMissedRuns(): void {
    // Ignores an error of the database, because this process reads the queue again every second.
    if (this.mustCheckQueue) this.claimAll().catch(() => undefined);
  }

  /** Claims a queued run and starts it. Returns true if this process may be able to claim another run. */
  private async claimNext(): Promise<boolean> {
    this.queuedDuringClaim.clear();
    if (this.stopping) return false;
    const { repository, processId } = this.options;
    const { slots } = this;
    if (slots.countFreeSlots() === 0) {
      this.mustCheckQueue = true;
      return false;
    }
    const isAnyAppAtLimit = slots.isAnyAppAtLimit();
    const claimed = repository.claim(processId, slots.getSlotCountByApp(), slots.getSlotLimitOfApp());
    const run = await this.trackClaim(claimed, (next) => {
      if (next) runInBackground(this.execute(next, slots.acquire(next.appId)));
      return next;
    });
    // The queue may contain more runs: for example, the claim does not find runs of an app that is at its limit.
    this.mustCheckQueue = run !== null || isAnyAppAtLimit || this.queuedDuringClaim.size > 0;
    return run?.isMoreClaimable || [...this.queuedDuringClaim].some((appId) => slots.canAcquire(appId));
  }

  /** Claims one run after the other, so that each claim counts the slot of the previous run. A call during a claim causes another claim. */
  private claimAll(): Promise<void> {
    const claimUntilNoneIsLeft = async () => {
      try {
        do {
          this.isClaimRequested = false;
          while (await this.claimNext());
        } while (this.isClaimRequested);
      } finally {
        this.claimInProgress = null;
      }
    };
    this.isClaimRequested = true;
    this.claimInProgress ??= claimUntilNoneIsLeft();
    return this.claimInProgress;
  }

  /** If this process executes the run `parentId`, starts its awaited run `childId` in a nested slot, and returns true. */
  onRunAwaited(parentId: number, childId: number): boolean {
    const parent = this.activeRuns.get(parentId);
    if (!parent || this.awaitedRuns.has(childId)) return parent !== undefined;
    this.awaitedRuns.add(childId);
    runInBackground(this.startNested(parent, childId).finally(() => this.awaitedRuns.delete(childId)));
    return true;
  }

  private async startNested({ appId, slot: parentSlot }: ActiveRun, childId: number): Promise<void> {
    const { repository, processId } = this.options;
    const slot = await this.slots.acquireNested(appId, parentSlot);
    // A stopping process still starts runs for which an active run waits, but not after a forced stop.
    if (this.stopping?.aborted) return slot.free();
    // The claim finds no run if another process has claimed the run or if the run was cancelled.
    await this.trackClaim(
      repository.claimById(processId, childId).catch(() => null),
      (run) => {
        if (run) runInBackground(this.execute(run, slot));
        else slot.free();
      },
    );
  }

  /** Returns a slot for a new run; null if none is free, or if this process stops. */
  tryAcquireSlot(appId: number): Slot | null {
    // One of the free slots is for the run that a claim in progress may return.
    return this.stopping ? null : this.slots.tryAcquire(appId, this.claimInProgress ? 1 : 0);
  }

  /** Call this method when any process has queued a run of the app. */
  onRunQueued(appId: number): void {
    this.mustCheckQueue = true;
    this.queuedDuringClaim.add(appId);
    if (!this.claimInProgress && this.slots.canAcquire(appId)) this.claimMissedRuns();
  }

  /** @param displacedBy ID of the run that replaces the cancelled run; null if no run replaces it */
  abortCancelledRun(id: number, displacedBy: number | null): void {
    this.activeRuns.get(id)?.controller.abort(createCancelledRunOutcome(displacedBy));
  }

  /** Starts queued runs. Returns the longest wait, in milliseconds, of a run that is still queued although a slot is free. */
  async claimQueued(): Promise<number> {
    if (this.stopping) return 0;
    await this.claimAll();
    const { slots } = this;
    const waitMs = await this.options.repository.findLongestWait(slots.getSlotCountByApp(), slots.getSlotLimitOfApp());
    return slots.countFreeSlots() === 0 ? 0 : waitMs;
  }

  getSlotUsage(): { total: number; free: number; waiting: number } {
    const { slots, starts } = this;
    return { total: slots.totalSlots, free: slots.countFreeSlots(), waiting: starts.eventNames().length };
  }

  /** Starts queued runs that active runs have called, in nested slots, because the notification `parent:child` can be lost. */
  async startQueuedChildRuns(): Promise<void> {
    if (this.stopping?.aborted || this.activeRuns.size === 0) return;
    for (const { id, causeRunId } of await this.options.repository.findQueuedByCause([...this.activeRuns.keys()])) {
      this.onRunAwaited(causeRunId, id);
    }
  }

  /**
   * Call this method at intervals. Aborts active runs that another process has ended, because the lease of this process had expired.
   * If the response to a claim was lost, this process holds a run that it does not execute. Queues this run again at the second call
   * that finds it, if no claim in progress can return it. Returns the number of runs that were queued again.
   */
  async settleHeldRuns(): Promise<number> {
    const { repository, processId } = this.options;
    const differences = await repository.findHeldDifferences(processId, [...this.activeRuns.keys()]);
    const previousClaimsByUnknownRun = this.claimsByUnknownRun;
    this.claimsByUnknownRun = new Map();
    let requeuedCount = 0;
    for (const { id, isHeld } of differences) {
      const claims = previousClaimsByUnknownRun.get(id);
      if (!isHeld) {
        this.activeRuns.get(id)?.controller.abort(LOST_OUTCOME);
        this.activeRuns.delete(id);
      } else if (!claims || claims.some((claim) => this.claims.has(claim))) {
        this.claimsByUnknownRun.set(id, claims ?? [...this.claims]);
      } else if (!this.activeRuns.has(id) && (await repository.returnClaim(id, processId))) requeuedCount += 1;
    }
    return requeuedCount;
  }

  /** Waits until the active runs have ended; `forceStop` aborts them. Claims only runs whose result an active run waits for. */
  async drain(forceStop: AbortSignal): Promise<void> {
    this.stopping = forceStop;
    const abortAll = () => {
      for (const { controller } of this.activeRuns.values()) controller.abort(SERVICE_STOPPED_OUTCOME);
    };
    forceStop.addEventListener("abort", abortAll);
    if (forceStop.aborted) abortAll();
    // Ignores an error: the caller of the claim receives it. Waits for the slots, because a nested run gets its slot before it is active.
    await this.claimInProgress?.catch(() => undefined);
    while (this.slots.isAnySlotUsed()) await delay(DRAIN_POLL_MS);
    forceStop.removeEventListener("abort", abortAll);
  }
}
