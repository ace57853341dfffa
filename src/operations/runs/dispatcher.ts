/**
 * Claims queued runs while slots are free, and executes each claimed run until it ends. Read this file to learn in
 * which order runs start.
 */
import { runInBackground } from "../../background.js";
import type { RunOutcome } from "../records/execution-logs.js";
import type { RunCancellation, RunExecutor } from "./executor.js";
import { LostClaimRecovery } from "./lost-claims.js";
import type { ClaimedRun, RunRepository } from "./run-repository.js";
import type { RunRecord } from "./run-types.js";
import { type Slot, Slots } from "./slots.js";

/** A run that this process is executing. */
interface ActiveRun {
  appId: number;
  controller: AbortController;
  done: Promise<RunOutcome>;
  slot: Slot;
}

/**
 * Number of milliseconds per megabyte of a run's result for which the slot of the run stays occupied after the run's
 * end. So an app with large results, which occupy the main thread, delays only its own later runs.
 */
const COOL_DOWN_MS_PER_MB = 150;
const COOL_DOWN_MIN_BYTES = 1024 * 1024;

/** Returns for how many milliseconds the slot of a run stays occupied after the run's end. */
export function computeCoolDownMs(outcome: RunOutcome): number {
  const bytes = outcome.ok ? (outcome.data?.length ?? 0) : 0;
  return bytes < COOL_DOWN_MIN_BYTES ? 0 : (bytes / 2 ** 20) * COOL_DOWN_MS_PER_MB;
}

function releaseSlotAfter(slot: Slot, ms: number): void {
  if (ms === 0) slot.free();
  else setTimeout(() => slot.free(), ms);
}

interface DispatcherOptions {
  repository: RunRepository;
  executor: Pick<RunExecutor, "execute">;
  /** ID of this process, with which it marks the runs that it claims. */
  processId: string;
  /**
   * Configured value of RUNNER_CONCURRENCY, from which `Slots` computes its limits; 0 if this process does not have the
   * role runner.
   */
  concurrency: number;
}

export class Dispatcher {
  private readonly slots: Slots;
  private readonly active = new Map<number, ActiveRun>();
  readonly lostClaims: LostClaimRecovery;
  /** IDs of queued runs for which an active run waits. Each starts as soon as a nested slot is free. */
  private readonly awaitedRuns = new Set<number>();
  /** Callers in this process that wait until a queued run starts, by the run's ID. */
  private readonly startListeners = new Map<number, Set<(done: Promise<RunOutcome>) => void>>();
  /**
   * While the process stops: signal that aborts when the active runs must end. Null while the process claims queued
   * runs.
   */
  private stopping: AbortSignal | null = null;
  /**
   * True if runs may still be queued although their notifications have already been handled. When a notification was
   * handled, no slot was free, or the app already used its share of the slots.
   */
  private mustCheckQueue = false;
  /** Apps for which runs were queued while the current claim was in progress. This claim may have missed these runs. */
  private readonly queuedDuringClaim = new Set<number>();
  private claimInProgress: Promise<void> | null = null;
  private isClaimRequested = false;

  constructor(private readonly options: DispatcherOptions) {
    this.slots = new Slots(options.concurrency, () => this.claimMissedRuns());
    this.lostClaims = new LostClaimRecovery(options.repository, options.processId, this.active);
  }

  /** Executes a run that this process has claimed. */
  execute(run: RunRecord, slot: Slot): Promise<RunOutcome> {
    const controller = new AbortController();
    if (this.stopping?.aborted) controller.abort("shutdown");
    const { executor, processId } = this.options;
    const executed = executor.execute(run, processId, controller.signal).catch((error: unknown) => {
      this.lostClaims.addUnwrittenEnd(run.id);
      throw error;
    });
    const done = executed.finally(() => this.active.delete(run.id));
    done.then(
      (outcome) => releaseSlotAfter(slot, computeCoolDownMs(outcome)),
      () => slot.free(),
    );
    this.active.set(run.id, { appId: run.appId, controller, done, slot });
    for (const listener of this.startListeners.get(run.id) ?? []) listener(done);
    return done;
  }

  /**
   * Calls `listener` when this process starts the run, with a promise for the run's outcome. The returned function
   * removes the listener.
   */
  onStart(runId: number, listener: (done: Promise<RunOutcome>) => void): () => void {
    const active = this.active.get(runId);
    if (active) listener(active.done);
    const listeners = this.startListeners.get(runId) ?? new Set();
    this.startListeners.set(runId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.startListeners.delete(runId);
    };
  }

  private claimMissedRuns(): void {
    // Ignores a failure of this claim, because the next call of `claimQueued` tries again.
    if (this.mustCheckQueue) this.claimAll().catch(() => undefined);
  }

  /** Claims and starts the next queued run. Returns true if this process may be able to claim another run. */
  private async claimNext(): Promise<boolean> {
    this.queuedDuringClaim.clear();
    if (this.stopping) return false;
    const { repository, processId } = this.options;
    const reserved = this.slots.reserve();
    if (!reserved) {
      this.mustCheckQueue = true;
      return false;
    }
    const claimed = repository.claim(processId, this.slots.perApp(), reserved.slotLimitOfApp);
    const start = (next: ClaimedRun | null) => {
      if (next) runInBackground(this.execute(next, reserved.assignToApp(next.appId)));
      else reserved.free();
      return next;
    };
    const run = await this.lostClaims.track(claimed, start).catch((error: unknown) => {
      reserved.free();
      throw error;
    });
    if (run) {
      this.mustCheckQueue = true;
      return run.isMoreClaimable;
    }
    const isAnyLeft =
      this.queuedDuringClaim.size > 0 || (this.slots.isAnyAppAtLimit() && (await repository.isAnyQueued()));
    this.mustCheckQueue = isAnyLeft || this.queuedDuringClaim.size > 0;
    return false;
  }

  /** True if the last claim may have missed a run of an app that can still get a slot. */
  private mayHaveMissedRun(): boolean {
    return [...this.queuedDuringClaim].some((appId) => this.slots.canAcquire(appId));
  }

  /**
   * Claims runs until no run can be claimed. Claims run one after the other, so that each claim counts the slot that
   * the previous claim used. A call during a claim causes another claim.
   */
  private claimAll(): Promise<void> {
    const all = async () => {
      try {
        do {
          this.isClaimRequested = false;
          while (await this.claimNext());
        } while (this.isClaimRequested || this.mayHaveMissedRun());
      } finally {
        this.claimInProgress = null;
      }
    };
    this.isClaimRequested = true;
    this.claimInProgress ??= all();
    return this.claimInProgress;
  }

  /**
   * Starts a queued run for which an active run waits, as soon as a nested slot is free. The active run keeps its own
   * slot, so that the two runs do not block each other.
   */
  onRunAwaited(parentId: number, childId: number): void {
    const parent = this.active.get(parentId);
    if (!parent || this.awaitedRuns.has(childId)) return;
    this.awaitedRuns.add(childId);
    runInBackground(this.startNested(parent, childId).finally(() => this.awaitedRuns.delete(childId)));
  }

  private async startNested({ appId, slot: parentSlot }: ActiveRun, childId: number): Promise<void> {
    const { repository, processId } = this.options;
    const slot = await this.slots.acquireNested(appId, parentSlot);
    // A stopping process still starts this run, because an active run waits for it. After a forced stop, it starts no
    // run.
    if (this.stopping?.aborted) return slot.free();
    // The claim may find no run: another process may have claimed it, or its caller may have cancelled it.
    await this.lostClaims.track(
      repository.claimById(processId, childId).catch(() => null),
      (run) => {
        if (run) runInBackground(this.execute(run, slot));
        else slot.free();
      },
    );
  }

  /**
   * Returns a slot in which a run of the app can start now, or null. If the active run `parentId` waits for the run,
   * also tries a nested slot.
   */
  tryAcquireSlot(appId: number, parentId: number | null): Slot | null {
    if (this.stopping?.aborted) return null;
    const parent = parentId === null ? undefined : this.active.get(parentId);
    const free = this.stopping ? null : this.slots.tryAcquire(appId);
    return free ?? (parent ? this.slots.tryAcquireNested(appId, parent.slot) : null);
  }

  /**
   * Handles a run of the app that this process or another has queued. Claims the run now if the app can get a slot,
   * otherwise when a slot becomes free.
   */
  onRunQueued(appId: number): void {
    this.mustCheckQueue = true;
    this.queuedDuringClaim.add(appId);
    if (!this.claimInProgress && this.slots.canAcquire(appId)) this.claimMissedRuns();
  }

  /** Ends a run early if this process executes it. */
  cancel(id: number, reason: RunCancellation): void {
    this.active.get(id)?.controller.abort(reason);
  }

  isRunActive(id: number): boolean {
    return this.active.has(id);
  }

  /**
   * Starts queued runs while slots are free, also those whose notification was lost. Returns the longest time in
   * milliseconds that a run has waited although it could start. More than a few seconds are a sign of a fault in the
   * service.
   * @throws errors of the database
   */
  async claimQueued(): Promise<number> {
    if (this.stopping) return 0;
    await this.claimAll();
    if (this.slots.freeCount() === 0) return 0;
    return this.options.repository.longestWait(this.slots.perApp(), this.slots.currentShare());
  }

  /**
   * Returns the number of slots of this process, the number of free slots, and the number of callers in this process
   * that wait for a queued run.
   */
  usage(): { total: number; free: number; waiting: number } {
    return { total: this.slots.totalSlots, free: this.slots.freeCount(), waiting: this.startListeners.size };
  }

  /**
   * Looks for queued runs for which active runs wait, because the notification about such a run can be lost. Call this
   * method at intervals.
   */
  async findAwaitedRuns(): Promise<void> {
    if (this.stopping?.aborted || this.active.size === 0) return;
    for (const { id, causeRunId } of await this.options.repository.queuedByCause([...this.active.keys()])) {
      this.onRunAwaited(causeRunId, id);
    }
  }

  /** Aborts the runs that another process has ended because the lease of this process had expired. */
  async abortLostRuns(): Promise<void> {
    const { repository, processId } = this.options;
    for (const id of await repository.findNoLongerHeld(processId, [...this.active.keys()]))
      this.active.get(id)?.controller.abort("lost");
  }

  /** Claims no more runs, and waits until the active runs have ended. When `forceStop` aborts, ends the active runs. */
  async drain(forceStop: AbortSignal): Promise<void> {
    this.stopping = forceStop;
    const abortAll = () => {
      for (const { controller } of this.active.values()) controller.abort("shutdown");
    };
    forceStop.addEventListener("abort", abortAll);
    if (forceStop.aborted) abortAll();
    // Waits for the slots instead of the active runs, because a claimed run already has a slot before it is active.
    await this.slots.whenEmpty();
    forceStop.removeEventListener("abort", abortAll);
  }
}
